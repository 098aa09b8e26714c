/// PacketSocket: the frames of an interface as they come, and frames sent as they are.
///
/// Stays where the thread was that made it (TestHosts::at_bridge). Thread: one receives, any
/// may send.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace stagecraft::tests {

class PacketSocket {
 public:
  /// Of all interfaces that are there where none is named. Throws std::runtime_error.
  explicit PacketSocket(const std::string& interface = "");
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  /// The next frame that came in from outside, behind the kernel's note on what is left to do for
  /// it (kNote bytes): it may be longer than any wire takes. Empty: none has come for a moment.
  [[nodiscard]] std::span<char> receive();
  /// Such a frame with its note. Dropped where there is no room, as on a wire.
  void send(std::span<const char> frame) const;
  /// Whence the last frame came.
  [[nodiscard]] std::string interface() const;

  /// A virtio_net_hdr; the kernel's header of it is no C++.
  static constexpr std::size_t kNote = 10;

 private:
  int socket_;
  int last_ = 0;
  std::string buffer_;
};

}  // namespace stagecraft::tests
