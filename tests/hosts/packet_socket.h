/// PacketSocket receives the frames of an interface unchanged, and sends frames unchanged.
///
/// It stays in the namespace of the thread that made it (TestHosts::at_bridge). Thread: one
/// receives, any may send.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace stagecraft::tests {

class PacketSocket {
 public:
  /// Reads from all existing interfaces if none is named. Throws std::runtime_error.
  explicit PacketSocket(const std::string& interface = "");
  ~PacketSocket();
  PacketSocket(const PacketSocket&) = delete;
  PacketSocket& operator=(const PacketSocket&) = delete;

  /// Returns the next frame that came in from outside, after the kernel's note on the work left for
  /// it (kNote bytes). The frame may be longer than a wire allows. Returns an empty span if none
  /// has come for a moment.
  [[nodiscard]] std::span<char> receive();
  /// Sends a frame with its note. Drops it if there is no room, as a wire does.
  void send(std::span<const char> frame) const;
  /// Returns the interface of the last frame.
  [[nodiscard]] std::string interface() const;

  /// Equals the size of a virtio_net_hdr, whose kernel header is not valid C++.
  static constexpr std::size_t kNote = 10;

 private:
  int socket_;
  int last_ = 0;
  std::string buffer_;
};

}  // namespace stagecraft::tests
