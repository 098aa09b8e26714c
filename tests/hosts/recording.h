/// Recording keeps what hosts have said to each other's ports, so that an outsider can repeat it.
///
/// For each connection that began while the object lives, it keeps the first bytes of the side that
/// opened it, up to the first missed frame. It ignores connections to sshd.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "stagecraft/tests/hosts/packet_socket.h"
#include "stagecraft/tests/hosts/test_hosts.h"

namespace stagecraft::tests {

struct Said {
  std::string address;  ///< the receiver
  std::uint16_t port = 0;
  std::string bytes;
};

class Recording {
 public:
  /// Throws std::runtime_error.
  explicit Recording(const TestHosts& hosts);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  /// Returns the bytes recorded so far, without connections that said nothing.
  [[nodiscard]] std::vector<Said> said() const;

 private:
  using Connection = std::tuple<std::uint32_t, std::uint16_t, std::uint32_t, std::uint16_t>;
  struct Kept {
    std::uint32_t next = 0;  ///< sequence number
    std::string bytes;
  };

  void listen();
  void take(const unsigned char* frame, std::size_t size);

  std::unique_ptr<PacketSocket> socket_;
  mutable std::mutex mutex_;  ///< guards kept_, which grows while it is read
  std::map<Connection, Kept> kept_;
  std::atomic<bool> over_{false};
  std::thread listener_;
};

}  // namespace stagecraft::tests
