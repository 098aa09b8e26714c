/// Trains in a simulated cluster under faults drawn from seeds. Prints the story of a seed that
/// breaks a promise, with as few faults as still break it.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sched.h>

#include "stagecraft/tests/simulate/refusing_allocator.h"
#include "stagecraft/tests/simulate/run.h"
#include "stagecraft/tests/simulate/shape.h"

namespace stagecraft::simulation {
namespace {

/// Strands take turns, so a second processor would only make each turn longer.
void stay_on_one_processor() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(std::max(sched_getcpu(), 0), &one);
  sched_setaffinity(0, sizeof one, &one);
}

bool parse(std::string_view range, std::uint64_t& first, std::uint64_t& last) {
  const char* const end = range.data() + range.size();
  const auto begin = std::from_chars(range.data(), end, first);
  if (begin.ec != std::errc() || !std::string_view(begin.ptr, end).starts_with("..")) {
    return false;
  }
  const auto rest = std::from_chars(begin.ptr + 2, end, last);
  return rest.ec == std::errc() && rest.ptr == end && first <= last;
}

void print_story(std::uint64_t seed, const RunResult& result) {
  fmt::print("seed {}\n{}", seed, result.story);
  if (!result.violation.empty()) {
    fmt::print("seed {} breaks a promise: {}\n", seed, result.violation);
  }
}

}  // namespace
}  // namespace stagecraft::simulation

int main(int argc, char** argv) {
  using namespace stagecraft::simulation;
  CLI::App app(
      "Trains in a simulated cluster under faults drawn from seeds, and checks what is promised.");
  std::string seeds = "1..100";
  std::uint64_t seed = 0;
  double minutes = 0.0;
  bool story = false;
  RunOptions options;
  const auto* one = app.add_option("--seed", seed, "Run this seed alone");
  app.add_option("--seeds", seeds, "Run these, A..B")->excludes("--seed");
  app.add_option(
         "--minutes", minutes, "End after so many minutes, and go on with later seeds until then")
      ->excludes("--seed");
  app.add_option("--ranks", options.ranks, "Ranks of the cluster")->check(CLI::Range(2, 1000));
  app.add_option("--shape", options.way, "Train in this shape, instead of one that the seed draws")
      ->check(CLI::IsMember(ways()));
  app.add_flag("--outlive",
               options.outlive,
               "Let workers outlive their drivers wherever ranks have mirrors");
  app.add_option("--steps", options.steps, "Steps of a run")->check(CLI::Range(1, 1000));
  app.add_option(
         "--faults", options.faults, "Faults of a run; without it the seed draws their number")
      ->check(CLI::Range(0, 1000));
  app.add_flag("--story", story, "Print what happens in each run");
  CLI11_PARSE(app, argc, argv);
  std::uint64_t first = seed, last = seed;
  if (one->empty() && !parse(seeds, first, last)) {
    fmt::print(stderr, "--seeds takes two numbers, as in 1..100, not '{}'\n", seeds);
    return 2;
  }
  if (!options.way.empty() && !fits(options.way, options.ranks)) {
    fmt::print(stderr, "{} ranks cannot train by {}\n", options.ranks, options.way);
    return 2;
  }
  stay_on_one_processor();
  at::set_num_threads(1);
  RefusingAllocator::install();
  const auto begun = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  };
  FaultCounts by_kind{};
  std::int64_t runs = 0, faults = 0, events = 0, recoveries = 0, broken = 0;
  for (std::uint64_t s = first; minutes > 0 ? seconds() < 60 * minutes : s <= last; ++s) {
    const RunResult result = run(s, options, faults_of(s, options));
    ++runs;
    for (std::size_t kind = 0; kind < by_kind.size(); ++kind) {
      by_kind[kind] += result.faults[kind];
      faults += result.faults[kind];
    }
    events += result.events;
    recoveries += result.recoveries;
    if (!result.violation.empty()) {
      ++broken;
      const RunResult shorter = shortened(s, options, result);
      print_story(s, shorter);
      break;
    } else if (story) {
      print_story(s, result);
    }
  }
  fmt::print(
      "{} runs, {} faults, {} recoveries, {} events; {} broke a promise\n"
      "{:.1f} s: {:.0f} faults a minute\n",
      runs,
      faults,
      recoveries,
      events,
      broken,
      seconds(),
      60 * static_cast<double>(faults) / seconds());
  for (std::size_t kind = 0; kind < by_kind.size(); ++kind) {
    fmt::print("{} {}{}",
               name_of(static_cast<Fault::Kind>(kind)),
               by_kind[kind],
               kind + 1 == by_kind.size() ? "\n" : ", ");
  }
  std::fflush(stdout);
  std::_Exit(broken == 0 ? 0 : 1);  // threads of a run that is stuck would be waited for
}
