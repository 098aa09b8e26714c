#include "stagecraft/actors/profile/link_costs.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <ATen/ops/zeros.h>

#include "stagecraft/base/median.h"
#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/futures/transport/inproc.h"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr Rank kHere{0}, kThere{1};
constexpr Tag kTag{
    .epoch = Epoch{0}, .submission = Submission{1}, .edge = EdgeId{0}, .microbatch = Microbatch{0}};

/// Both ends, and the objects that they need.
struct Ends {
  std::vector<std::shared_ptr<DataPort>> ports;
  std::vector<std::unique_ptr<Network>> networks;
  std::shared_ptr<Transport> here, there;
};

Ends ends_of(RankHomes homes) {
  Ends ends;
  if (homes == RankHomes::Threads) {
    ends.networks.push_back(std::make_unique<InprocNetwork>(2));
    ends.here = ends.networks[0]->endpoint(kHere);
    ends.there = ends.networks[0]->endpoint(kThere);
    return ends;
  }
  constexpr NetworkId kNetwork{1};
  std::vector<RoutedNetwork*> routed;
  for (int i = 0; i < 2; ++i) {
    ends.ports.push_back(DataPort::open({.bind = "tcp://127.0.0.1:*"}));
    auto network = std::make_unique<RoutedNetwork>(ends.ports.back(), kNetwork, 2);
    routed.push_back(network.get());
    ends.networks.push_back(std::move(network));
  }
  routed[0]->place(kThere, ends.ports[1]->address());
  routed[1]->place(kHere, ends.ports[0]->address());
  ends.here = routed[0]->endpoint(kHere);
  ends.there = routed[1]->endpoint(kThere);
  return ends;
}

/// Returns the sizes of the benchmark, in elements.
std::set<std::int64_t> sizes() {
  constexpr std::int64_t kSides[] = {100, 400, 800, 3200};
  std::set<std::int64_t> all;
  for (const std::int64_t batch : {1, 2, 4}) {
    for (const std::int64_t width : kSides) {
      for (const std::int64_t height : kSides) {
        const std::int64_t elements = batch * width * height;
        if (static_cast<double>(elements) * sizeof(float) <= kLargestTransfer) {
          all.insert(elements);
        }
      }
    }
  }
  return all;
}

/// Times says how often each size is sent: large ones need fewer repeats.
struct Times {
  int warm_up = 5;
  int timed = 10;

  [[nodiscard]] static Times of(std::int64_t elements) {
    constexpr std::int64_t kMany = 1'000'000;
    return elements > kMany ? Times{1, 3} : Times{};
  }
};

/// Sends back `count` tensors. Ends when the other end is closed.
void echo(Transport& end, int count) {
  try {
    for (int i = 0; i < count; ++i) {
      end.send(kHere, kTag, end.receive(kHere, kTag).get());
    }
  } catch (const Error&) {  // the other thread fails too, and reports its error
  }
}

}  // namespace

std::vector<TransferTime> measure_transfers(RankHomes homes) {
  const Ends ends = ends_of(homes);
  const std::set<std::int64_t> all = sizes();
  int count = 0;
  for (const std::int64_t elements : all) {
    const Times times = Times::of(elements);
    count += times.warm_up + times.timed;
  }
  std::thread other([&] { echo(*ends.there, count); });
  std::vector<TransferTime> transfers;
  try {
    for (const std::int64_t elements : all) {
      const Times times = Times::of(elements);
      const at::Tensor tensor = at::zeros({elements}, at::kFloat);
      std::vector<double> samples;
      for (int i = -times.warm_up; i < times.timed; ++i) {
        const auto begun = SteadyClock::now();
        ends.here->send(kThere, kTag, tensor);
        (void)ends.here->receive(kThere, kTag).get();
        if (i >= 0) {
          samples.push_back(std::chrono::duration<double>(SteadyClock::now() - begun).count() / 2);
        }
      }
      transfers.push_back(
          {static_cast<double>(elements) * sizeof(float), median(std::move(samples))});
    }
  } catch (...) {
    ends.there->close(Error(Errc::TransportClosed, "the measuring of transfers failed"));
    other.join();
    throw;
  }
  other.join();
  return transfers;
}

Link fit_link(std::span<const TransferTime> transfers) {
  // Both derivatives of sum(((latency + slope * bytes) / seconds - 1)^2) are 0 at the best line.
  double ww = 0, wx = 0, xx = 0, wy = 0, xy = 0;
  for (const TransferTime& one : transfers) {
    const double w = 1 / one.seconds;
    const double x = one.bytes / one.seconds;
    ww += w * w;
    wx += w * x;
    xx += x * x;
    wy += w;
    xy += x;
  }
  const double determinant = ww * xx - wx * wx;
  const double slope = determinant > 0 ? (ww * xy - wx * wy) / determinant : 0;
  if (slope <= 0) {
    return {.latency = wy / ww};
  }
  const double latency = (wy - slope * wx) / ww;
  return latency >= 0 ? Link{.latency = latency, .bandwidth = 1 / slope}
                      : Link{.latency = 0, .bandwidth = xx / xy};
}

}  // namespace stagecraft
