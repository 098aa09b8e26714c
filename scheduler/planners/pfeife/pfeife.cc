#include "stagecraft/scheduler/planners/pfeife/pfeife.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/scheduler/planners/pfeife/cut_candidates.h"
#include "stagecraft/scheduler/planners/pfeife/cut_search.h"
#include "stagecraft/scheduler/planners/pfeife/given_schedule.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife_sets.h"

namespace stagecraft {
namespace {

/// Up to these limits, a search of one size takes at most about a minute on one core, with 32
/// microbatches and enough memory.
constexpr int kMaxOperators = 5'000;
constexpr int kMaxDevices = 16;
/// The number of sets per size that are searched to the end; the others get only the beam.
constexpr std::size_t kRefined = 3;
/// The search tries more extra forwards while they, or the ones before them, shorten a step by this
/// fraction.
constexpr double kWorthIt = 0.01;

struct Found {
  PfeifeOptions set;
  CutCost cost;
  ScoredCut cut;
};

/// Stops the sets of one block, whose extra forwards grow, at the second set without progress.
class Patience {
 public:
  [[nodiscard]] bool is_spent(const PfeifeOptions& set) {
    if (set.loops != loops_ || set.block != block_) {
      *this = {};
      loops_ = set.loops;
      block_ = set.block;
    }
    return misses_ > 1;
  }
  void add(const CutScore& score) {
    const bool helps = score.excess < best_.excess || score.time < best_.time * (1 - kWorthIt);
    misses_ = helps ? 0 : misses_ + 1;
    best_ = std::min(best_, score);
  }

 private:
  int loops_ = 0, block_ = 0;
  int misses_ = 0;
  CutScore best_;
};

/// Returns the sets of one size with their cuts; each beam starts from the best cut of the set
/// before. `found_some`: whether other sizes have given results.
std::vector<Found> found_by_beams(const PlanRequest& request,
                                  const OperatorRow& row,
                                  int size,
                                  bool found_some) {
  const int microbatches = request.batch / size;
  std::vector<Found> all;
  Patience patience;
  for (const PfeifeOptions& set : pfeife_sets({.operators = row.size(),
                                  .devices = request.devices,
                                  .microbatches = microbatches,
                                  .forward = row.times(0, row.size()).forward})) {
    if (patience.is_spent(set) || !request.allows_stages(set.loops * request.devices)) {
      continue;
    }
    const std::string part =
        fmt::format("pfeife: {} on microbatches of {}", schedule_name(set), size);
    if (!request.proceeds(part, found_some || !all.empty())) {
      break;
    }
    CutCost cost(row,
                 request.costs.links,
                 pfeife(request.devices, microbatches, set),
                 request.memory,
                 request.costs.device);
    CutSearchOptions options{.beam = {.is_over = request.is_over(part)}};
    if (!all.empty() && all.back().set.loops == set.loops) {
      options.starts = {all.back().cut.cuts};
    }
    ScoredCut cut = first_cut(cost, options);
    patience.add(cut.score);
    all.push_back({set, std::move(cost), std::move(cut)});
  }
  return all;
}

void add_sets(const PlanRequest& request, int size, bool found_some, CutCandidates& candidates) {
  const WorkGraph graph = WorkGraph::of(request.costs, size);
  const OperatorRow row(graph);
  std::vector<Found> all = found_by_beams(request, row, size, found_some);
  std::ranges::stable_sort(all, {}, [](const Found& found) { return found.cut.score; });
  for (std::size_t i = 0; i < all.size(); ++i) {
    Found& found = all[i];
    const std::string part =
        fmt::format("pfeife: moves of {} on microbatches of {}", schedule_name(found.set), size);
    if (i < kRefined && request.proceeds(part, true)) {
      found.cut = refine_cut(
          found.cost, std::move(found.cut), {.beam = {.is_over = request.is_over(part)}});
    }
    candidates.add(found.cost, found.cut, schedule_name(found.set));
  }
}

}  // namespace

std::optional<std::string> pfeife_refuses(const PlanRequest& request) {
  if (const auto reason = request.lacks_pieces("pfeife")) {
    return reason;
  }
  const int operators = request.pieces();
  if (operators > kMaxOperators || request.devices > kMaxDevices) {
    return fmt::format(
        "pfeife plans for up to {} operators and {} devices, found {} and {}; graphpipe, capslog "
        "and balance take more",
        kMaxOperators,
        kMaxDevices,
        operators,
        request.devices);
  }
  return std::nullopt;
}

std::vector<Candidate> pfeife_candidates(const PlanRequest& request) {
  if (request.schedule || request.builder) {
    return best_cut_for_schedule(request);
  }
  CutCandidates candidates;
  for (const int size : request.sizes()) {
    add_sets(request, size, size != request.sizes().front(), candidates);
  }
  return std::move(candidates).take(request.memory);
}

}  // namespace stagecraft
