/// SlowLink is a relay between a host and the others that passes at most so many bytes a second
/// each way. Not every kernel has its own `tc netem`.
///
///   host --- port --- relay --- slow ~~~ fast --- bridge
///
/// Frames that find the relay's queue full are dropped, as at a router. The relay works for as long
/// as the object lives.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "stagecraft/tests/hosts/packet_socket.h"
#include "stagecraft/tests/hosts/test_hosts.h"

namespace stagecraft::tests {

class SlowLink {
 public:
  /// Throws std::runtime_error. Requires: `hosts` outlives this.
  SlowLink(const TestHosts& hosts, int host, double bytes_per_second);
  ~SlowLink();
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

 private:
  void relay(PacketSocket& from, const PacketSocket& to) const;

  const TestHosts& hosts_;
  const int host_;
  const double bytes_per_second_;
  std::unique_ptr<PacketSocket> of_host_, of_rest_;
  /// Nothing is relayed from this time on; set when the link is to end.
  std::atomic<std::chrono::steady_clock::time_point> last_{
      std::chrono::steady_clock::time_point::max()};
  std::thread there_, back_;
};

/// Is a hundredth of a link of a gigabit a second.
inline constexpr double kSlowBytesPerSecond = 1.25e6;

}  // namespace stagecraft::tests
