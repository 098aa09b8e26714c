#include "stagecraft/actors/profile/link_costs.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include <ATen/ops/zeros.h>

#include "stagecraft/base/median.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr double kFastestMemory = 1e12;  // bytes per second; what seems faster is noise

constexpr Rank kHere{0}, kThere{1};
constexpr Tag kTag{
    .epoch = Epoch{0}, .submission = Submission{1}, .edge = EdgeId{0}, .microbatch = Microbatch{0}};

/// Both ends, and the objects that they need.
struct LinkEnds {
  std::vector<std::shared_ptr<DataPort>> ports;
  std::vector<std::unique_ptr<Network>> networks;
  std::shared_ptr<Transport> here, there;
};

LinkEnds ends_of(RankHomes homes) {
  LinkEnds ends;
  if (homes == RankHomes::Threads) {
    ends.networks.push_back(std::make_unique<InprocNetwork>(2));
    ends.here = ends.networks[0]->endpoint(kHere);
    ends.there = ends.networks[0]->endpoint(kThere);
    return ends;
  }
  constexpr NetworkId kNetwork{1};
  std::vector<RoutedNetwork*> routed;
  for (int i = 0; i < 2; ++i) {
    ends.ports.push_back(
        DataPort::open({.bind = "tcp://127.0.0.1:*", .shared_memory = MemoryFile::usual_limit()}));
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

  [[nodiscard]] int all() const { return warm_up + timed; }

  [[nodiscard]] static Times of(std::int64_t elements) {
    constexpr std::int64_t kMany = 1'000'000;
    return elements > kMany ? Times{1, 3} : Times{};
  }
};

/// Runs `there` on a thread of its own beside `here`, until both end. If `here` fails, closes the
/// other end.
void run_both(const LinkEnds& ends,
              const std::function<void()>& here,
              const std::function<void()>& there) {
  std::thread other([&] {
    try {
      there();
    } catch (const Error&) {  // this thread fails too, and reports its error
    }
  });
  try {
    here();
  } catch (...) {
    ends.there->close(Error(Errc::TransportClosed, "the measuring of transfers failed"));
    other.join();
    throw;
  }
  other.join();
}

/// Returns the median of the timed runs.
double timed(const Times& times, const std::function<void()>& run) {
  std::vector<double> samples;
  for (int i = -times.warm_up; i < times.timed; ++i) {
    const auto begun = SteadyClock::now();
    run();
    if (i >= 0) {
      samples.push_back(std::chrono::duration<double>(SteadyClock::now() - begun).count());
    }
  }
  return median(std::move(samples));
}

double bytes_of(std::int64_t elements) {
  return static_cast<double>(elements) * sizeof(float);
}

/// Member is one end's part in sums.
class Member {
 public:
  /// The thread that adds has one processor, as in a worker.
  explicit Member(std::shared_ptr<Transport> transport)
      : collective_(
            std::move(transport), std::make_shared<WaitBoard>(), [] { set_own_thread_count(1); }) {}

  void sum(const at::Tensor& buffer) {
    const Sequence sequence{
        .plan = PlanId{0}, .epoch = Epoch{0}, .submission = Submission{1}, .number = number_++};
    (void)collective_.all_reduce(group_, sequence, buffer)
        ->wait(std::chrono::steady_clock::now() + kMostSeconds);
  }

 private:
  static constexpr std::chrono::seconds kMostSeconds{60};

  TransportCollective collective_;
  const Group group_{.ranks = {kHere, kThere}};
  std::int32_t number_ = 0;
};

}  // namespace

std::vector<TransferTime> measure_transfers(RankHomes homes) {
  const LinkEnds ends = ends_of(homes);
  std::vector<TransferTime> transfers;
  const auto here = [&] {
    for (const std::int64_t elements : sizes()) {
      const at::Tensor tensor = at::zeros({elements}, at::kFloat);
      const double seconds = timed(Times::of(elements), [&] {
        ends.here->send(kThere, kTag, tensor);
        (void)ends.here->receive(kThere, kTag).get();
      });
      transfers.push_back({bytes_of(elements), seconds / 2});
    }
  };
  const auto there = [&] {
    for (const std::int64_t elements : sizes()) {
      for (int i = 0; i < Times::of(elements).all(); ++i) {
        ends.there->send(kHere, kTag, ends.there->receive(kHere, kTag).get());
      }
    }
  };
  run_both(ends, here, there);
  return transfers;
}

std::vector<TransferTime> measure_sums(RankHomes homes) {
  const LinkEnds ends = ends_of(homes);
  std::vector<TransferTime> halves;
  const auto here = [&] {
    Member member(ends.here);
    for (const std::int64_t elements : sizes()) {
      const at::Tensor tensor = ends.here->lendable(elements, at::kFloat);
      const double seconds = timed(Times::of(elements), [&] { member.sum(tensor); });
      halves.push_back({bytes_of(elements) / 2, seconds / 2});
    }
  };
  const auto there = [&] {
    Member member(ends.there);
    for (const std::int64_t elements : sizes()) {
      const at::Tensor tensor = ends.there->lendable(elements, at::kFloat);
      for (int i = 0; i < Times::of(elements).all(); ++i) {
        member.sum(tensor);
      }
    }
  };
  run_both(ends, here, there);
  return halves;
}

LinkCosts measure_links(RankHomes homes) {
  return {.usual = fit_link(measure_transfers(homes)), .sums = fit_link(measure_sums(homes))};
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
  if (slope <= 1 / kFastestMemory) {
    return {.latency = wy / ww};
  }
  const double latency = (wy - slope * wx) / ww;
  return latency >= 0 ? Link{.latency = latency, .bandwidth = 1 / slope}
                      : Link{.latency = 0, .bandwidth = xx / xy};
}

}  // namespace stagecraft
