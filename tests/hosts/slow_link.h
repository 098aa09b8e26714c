/// SlowLink: a relay in the way between a host and the others, which takes no more than so many
/// bytes a second each way; the kernel's own `tc netem` is not in every kernel.
///
///   host --- port --- relay --- slow ~~~ fast --- bridge
///
/// What finds the relay's queue full is dropped, as at a router. For as long as the object lives.
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
  /// Nothing is relayed from then on; known when the link is to end.
  std::atomic<std::chrono::steady_clock::time_point> last_{
      std::chrono::steady_clock::time_point::max()};
  std::thread there_, back_;
};

/// A hundredth of a link of a gigabit a second.
inline constexpr double kSlowBytesPerSecond = 1.25e6;

}  // namespace stagecraft::tests
