/// What does a call of a remote actor cost? This program measures calls of actors in this process
/// and in worker processes of this host, and bare exchanges of the same kind.
///
///   hand-off        two threads wake each other in turns: a round trip is two hand-offs
///   ping-pong       two processes send 64 bytes there and back over the data plane
///
/// The chain makes 1 MiB on one rank and reads it on another; the tensor goes from rank to rank.
/// Hand-offs are measured before and after the calls, and the smaller figure counts.
///
///   actor_calls [--pinned]
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/base/median.h"
#include "stagecraft/bench/call_target.h"
#include "stagecraft/bench/cluster/pinning.h"
#include "stagecraft/bench/cluster/sides.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"
#include "stagecraft/futures/wait.h"

namespace stagecraft::bench::actor_calls {
namespace {

constexpr int kRounds = 9;
constexpr int kCalls = 1'000;
constexpr int kPipelined = 10'000;
constexpr int kChains = 200;
constexpr std::int64_t kFloats = 256 * 1024;  // 1 MiB

/// Returns the microseconds of one of `count` runs of `work`: the median of several rounds.
double microseconds_of(int count, const std::function<void()>& work) {
  std::vector<double> rounds;
  for (int round = -1; round < kRounds; ++round) {  // the first one warms up
    const double seconds = seconds_of([&] {
      for (int i = 0; i < count; ++i) {
        work();
      }
    });
    if (round >= 0) {
      rounds.push_back(seconds * 1e6 / count);
    }
  }
  return median(rounds);
}

/// Baton goes to and fro between two threads.
struct Baton {
  std::mutex mutex;
  std::condition_variable passed;
  bool is_here = true;

  void pass(bool here) {
    std::unique_lock lock(mutex);
    is_here = !here;
    passed.notify_all();
    passed.wait(lock, [&] { return is_here == here; });
  }
};

double hand_off() {
  Baton baton;
  bool ends = false;
  std::thread other([&] {
    std::unique_lock lock(baton.mutex);
    while (!ends) {
      baton.passed.wait(lock, [&] { return !baton.is_here; });
      baton.is_here = true;
      baton.passed.notify_all();
    }
  });
  const double both_ways = microseconds_of(kCalls, [&] { baton.pass(true); });
  {
    const std::scoped_lock lock(baton.mutex);
    ends = true;
    baton.is_here = false;
  }
  baton.passed.notify_all();
  other.join();
  return both_ways;
}

/// Measures in two processes, which exist for that alone.
double ping_pong(bool is_pinned) {
  double result = 0.0;
  const std::vector<int> usable = usable_processors();
  Side::run(2, [&](Side& side) {
    if (is_pinned) {
      restrict_to(getpid(), {usable[static_cast<std::size_t>(side.number()) % usable.size()]});
    }
    const Link link(side, {.shared_memory = MemoryFile::usual_limit()});
    const Rank other(1 - side.number());
    const at::Tensor bytes = at::ones({64}, at::kByte);
    std::int64_t number = 0;
    const auto exchange = [&] {
      const Tag tag{.submission = Submission(++number)};
      if (side.is_first()) {
        link.end->send(other, tag, bytes);
        (void)link.end->receive(other, tag).get();
      } else {
        (void)link.end->receive(other, tag).get();
        link.end->send(other, tag, bytes);
      }
    };
    result = microseconds_of(kCalls, exchange);
    (void)side.exchange("");  // the last message has arrived
  });
  return result;
}

struct Costs {
  double call = 0.0;
  double a_second = 0.0;  ///< pipelined calls
  double chain = 0.0;
};

Costs costs_of(const Cluster& cluster) {
  const auto first = cluster.spawn<CallTarget>(on(Rank(0)));
  const auto second = cluster.spawn<CallTarget>(on(Rank(1)));
  Costs costs;
  costs.call = microseconds_of(kCalls, [&] { (void)first.call<&CallTarget::same>(1).get(); });
  const double all = microseconds_of(1, [&] {
    std::vector<Future<std::int64_t>> futures;
    futures.reserve(kPipelined);
    for (int i = 0; i < kPipelined; ++i) {
      futures.push_back(first.call<&CallTarget::same>(i));
    }
    for (const auto& future : futures) {
      (void)future.get();
    }
  });
  costs.a_second = kPipelined / (all * 1e-6);
  costs.chain = microseconds_of(kChains, [&] {
    (void)second.call<&CallTarget::first_of>(first.call<&CallTarget::make>(kFloats)).get();
  });
  return costs;
}

void print(std::string_view name, const Costs& costs, double bare) {
  fmt::print("| {:<10} | {:>7.1f} us | {:>7.1f} us | {:>5.2f} | {:>9.0f} | {:>7.1f} us |\n",
             name,
             costs.call,
             bare,
             costs.call / bare,
             costs.a_second,
             costs.chain);
}

}  // namespace

int run(int argc, char** argv) {
  const bool is_pinned = argc == 2 && std::string_view(argv[1]) == "--pinned";
  if (argc > 2 || (argc == 2 && !is_pinned)) {
    fmt::print(stderr, "usage: actor_calls [--pinned]\n");
    return 2;
  }
  const double bare_processes = ping_pong(is_pinned);  // it needs a process without threads
  const std::vector<int> usable = usable_processors();
  if (is_pinned) {
    restrict_to(getpid(), {usable.front()});
  }
  double bare_threads = hand_off();
  const Costs threads = costs_of(Cluster::local(2));
  bare_threads = std::min(bare_threads, hand_off());
  const Cluster cluster = Cluster::spawn(2, {.program = "/proc/self/exe"});
  if (is_pinned) {
    (void)cluster.spawn<CallTarget>(on(Rank(0)));  // starts the processes
    for (const WorkerPlace& worker : cluster.workers()) {
      restrict_to(static_cast<pid_t>(worker.process), {usable.back()});
    }
  }
  const Costs processes = costs_of(cluster);
  fmt::print(
      "{}\n{}; medians of {} rounds\n\n"
      "| ranks      | call       | bare       | ratio | calls / s | 1 MiB chain |\n"
      "|---|---|---|---|---|---|\n",
      hardware(),
      is_pinned ? "driver on one processor, ranks on another" : "not pinned",
      kRounds);
  print("threads", threads, bare_threads);
  print("processes", processes, bare_processes);
  return 0;
}

}  // namespace stagecraft::bench::actor_calls
