#include "stagecraft/bench/plans/plans_comparison.h"

#include <algorithm>
#include <optional>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/byte_count.h"

namespace stagecraft::bench {
namespace {

Cut equal_operators(int operators, int stages) {
  std::vector<std::string> places;
  for (int stage = 1; stage < stages; ++stage) {
    places.push_back(fmt::format("op:{}", operators * stage / stages));
  }
  return At(places);
}

Cut equal_times(PlanRequest request) {
  request.builder = "1f1b";
  return planned_cut(request.costs, propose(request, "balance").front());
}

/// Returns the plan that `stagecraft train --plan auto` would choose.
PlanProposal best_plan(const Ways& ways, double memory) {
  const PlanRequest request = ways.request();
  return plan(ways.whole(),
              request.costs,
              request.devices,
              {.batch = request.batch,
               .memory = memory,
               .processors = request.costs.device.processors})
      .front();
}

/// Returns the fastest way that fits, except one worker and `auto`; null if no other fits.
const MeasuredWay* best_other(const std::vector<MeasuredWay>& ways, double memory) {
  const MeasuredWay* best = nullptr;
  for (const MeasuredWay& way : std::span(ways).subspan(1, ways.size() - 2)) {
    const bool faster = best == nullptr || way.seconds.median < best->seconds.median;
    best = way.bytes <= memory && faster ? &way : best;
  }
  return best;
}

}  // namespace

Verdict verdict_of(const Quartiles& ours, const Quartiles& other) {
  if (ours.third < other.first) {
    return Verdict::Wins;
  }
  return ours.first > other.third ? Verdict::Slower : Verdict::WithinNoise;
}

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Wins:
      return "wins";
    case Verdict::WithinNoise:
      return "within the noise";
    case Verdict::Slower:
      break;
  }
  return "slower";
}

Comparison compare(const Subject& subject, const WaysOptions& options, double memory) {
  const int stages = options.workers;
  const auto cut = [&](const std::optional<Cut>& where) { return subject.compile(where, stages); };
  Ways ways(subject, options);
  ways.add(fmt::format("{}, 1f1b", subject.own_cut), cut(std::nullopt));
  ways.add("equal operators, 1f1b", cut(equal_operators(ways.operators(), stages)));
  ways.add("equal times, 1f1b", cut(equal_times(ways.request())));
  const PlanProposal best = best_plan(ways, memory);
  ways.add(fmt::format("auto: {}", best.candidate.schedule_name),
           cut(planned_cut(ways.request().costs, best)),
           best.candidate.schedule);
  Comparison made{.name = subject.name, .workers = options.workers, .ways = ways.measure()};
  const MeasuredWay* other = best_other(made.ways, memory);
  made.verdict =
      other == nullptr ? Verdict::Wins : verdict_of(made.ways.back().seconds, other->seconds);
  return made;
}

std::string text_of(const Comparison& comparison, double memory) {
  const std::string where = fmt::format("{:26} {} workers  ", comparison.name, comparison.workers);
  std::string text;
  for (const MeasuredWay& way : comparison.ways) {
    text +=
        fmt::format("{}{:40} {:8.1f} ms  ({:.1f} to {:.1f})  predicted {:8.1f}  {}  holds {}{}\n",
                    where,
                    way.name,
                    way.seconds.median * 1e3,
                    way.seconds.first * 1e3,
                    way.seconds.third * 1e3,
                    way.predicted * 1e3,
                    miss_text(way.missed_by(), comparison.ways.front().missed_by()),
                    bytes_text(way.bytes),
                    way.bytes <= memory ? "" : ", too much");
  }
  const MeasuredWay* other = best_other(comparison.ways, memory);
  return text + fmt::format("{}auto: {}, {}\n",
                            where,
                            to_string(comparison.verdict),
                            other == nullptr ? "nothing else fits" : "beside " + other->name);
}

std::string summary_of(const std::vector<Comparison>& all) {
  const auto count = [&](Verdict verdict) {
    return std::ranges::count(all, verdict, &Comparison::verdict);
  };
  std::vector<std::string> slower;
  for (const Comparison& one : all) {
    if (one.verdict == Verdict::Slower) {
      slower.push_back(fmt::format("{} on {} workers", one.name, one.workers));
    }
  }
  return fmt::format("auto wins {}, within the noise {}, slower {} of {}{}{}\n",
                     count(Verdict::Wins),
                     count(Verdict::WithinNoise),
                     count(Verdict::Slower),
                     all.size(),
                     slower.empty() ? "" : ": ",
                     fmt::join(slower, "; "));
}

}  // namespace stagecraft::bench
