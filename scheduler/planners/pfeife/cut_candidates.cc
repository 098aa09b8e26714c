#include "stagecraft/scheduler/planners/pfeife/cut_candidates.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

void CutCandidates::add(CutCost& cost, const ScoredCut& found, std::string schedule_name) {
  if (found.score.excess > 0) {
    if (!tightest_ || found.score.excess < tightest_->excess) {
      tightest_ = {found.score.excess, cost.peak(found.cuts), std::move(schedule_name)};
    }
    return;
  }
  found_.push_back({found.score.time,
                    {.planner = "pfeife",
                     .stages = stages_of_cuts(found.cuts, cost.row().size()),
                     .microbatch_size = cost.row().graph().samples(),
                     .stage_sizes = {},
                     .schedule = cost.schedule(),
                     .schedule_name = std::move(schedule_name)}});
}

std::vector<Candidate> CutCandidates::take(double memory) && {
  if (found_.empty() && tightest_) {
    const Tightest& tightest = *tightest_;
    throw Error(
        Errc::PlanInfeasible,
        fmt::format("no cut fits: with the one that comes nearest ({}), device {} holds {}, {} "
                    "more than the {} that it may hold; use more devices or smaller microbatches",
                    tightest.schedule_name,
                    tightest.peak.row,
                    bytes_text(tightest.peak.bytes),
                    enough_bytes_text(tightest.excess),
                    bytes_text(memory)));
  }
  std::ranges::stable_sort(found_, {}, [](const Found& found) {
    return std::pair(found.time, found.candidate.stages.size());
  });
  std::vector<Candidate> candidates;
  for (Found& found : found_) {
    candidates.push_back(std::move(found.candidate));
  }
  return candidates;
}

}  // namespace stagecraft
