#include "stagecraft/tests/hosts/slow_link.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace stagecraft::tests {
namespace {

void ip(const TestHosts& hosts, std::vector<std::string> words) {
  words.insert(words.begin(), {"ip", "-n", hosts.bridge(), "link"});
  if (const CommandResult result = run_command(words); result.exit_code != 0) {
    throw std::runtime_error("no slow link: " + result.err);
  }
}

constexpr std::chrono::seconds kTimeToDrain{2};

std::string slow_end(int host) {
  return "slow" + std::to_string(host);
}

}  // namespace

SlowLink::SlowLink(const TestHosts& hosts, int host, double bytes_per_second)
    : hosts_(hosts), host_(host), bytes_per_second_(bytes_per_second) {
  const std::string port = TestHosts::port_of(host), slow = slow_end(host),
                    fast = "fast" + std::to_string(host);
  ip(hosts, {"add", slow, "type", "veth", "peer", "name", fast});
  ip(hosts, {"set", fast, "master", "bridge", "up"});
  ip(hosts, {"set", slow, "up"});
  ip(hosts, {"set", port, "nomaster"});
  hosts.at_bridge([&] {
    of_host_ = std::make_unique<PacketSocket>(port);
    of_rest_ = std::make_unique<PacketSocket>(slow);
  });
  there_ = std::thread([this] { relay(*of_host_, *of_rest_); });
  back_ = std::thread([this] { relay(*of_rest_, *of_host_); });
}

SlowLink::~SlowLink() {
  last_ = std::chrono::steady_clock::now() + kTimeToDrain;
  there_.join();
  back_.join();
  ip(hosts_, {"set", TestHosts::port_of(host_), "master", "bridge"});
  ip(hosts_, {"delete", slow_end(host_)});
}

void SlowLink::relay(PacketSocket& from, const PacketSocket& to) const {
  using WireClock = std::chrono::steady_clock;
  auto free = WireClock::now();  // when the wire has taken all sent frames
  while (true) {
    const auto frame = from.receive();
    const auto last = last_.load();
    if ((frame.empty() && last != WireClock::time_point::max()) || WireClock::now() >= last) {
      return;  // all frames under way have arrived, unless the link never ends
    }
    if (frame.empty()) {
      continue;
    }
    const std::chrono::duration<double> taken(static_cast<double>(frame.size()) /
                                              bytes_per_second_);
    free =
        std::max(free, WireClock::now()) + std::chrono::duration_cast<WireClock::duration>(taken);
    std::this_thread::sleep_until(free);
    to.send(frame);
  }
}

}  // namespace stagecraft::tests
