/// Recording: what the hosts have said to each other's ports, to be said once more by somebody
/// else.
///
/// Of each connection that began while the object lives: the first bytes of whoever opened it, as
/// far as none was missed. Connections to sshd are none of ours.
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
  std::string address;  ///< to whom
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

  /// So far, without those who said nothing.
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
  mutable std::mutex mutex_;  ///< guards kept_, which is read while it grows
  std::map<Connection, Kept> kept_;
  std::atomic<bool> over_{false};
  std::thread listener_;
};

}  // namespace stagecraft::tests
