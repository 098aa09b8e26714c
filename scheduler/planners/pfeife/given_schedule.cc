#include "stagecraft/scheduler/planners/pfeife/given_schedule.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/hash.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/planners/balance/cut_items.h"
#include "stagecraft/scheduler/planners/balance/recipes.h"
#include "stagecraft/scheduler/planners/capslog/memory_cut.h"
#include "stagecraft/scheduler/planners/pfeife/cut_candidates.h"
#include "stagecraft/scheduler/planners/pfeife/cut_search.h"

namespace stagecraft {
namespace {

/// The number of schedules of a named builder that are searched to the end.
constexpr std::size_t kSearchedOfOne = 4;

/// `costs`: of the stages, for a builder that uses them; absent: equal stages.
Schedule built(const Recipe& recipe,
               int devices,
               int microbatches,
               std::optional<Costs> costs = std::nullopt) {
  BuildRequest request{.microbatches = microbatches, .set = recipe.set, .costs = std::move(costs)};
  if (recipe.builder->takes_graph) {
    request.graph = StageGraph::chain(devices);
  } else {
    request.devices = devices;
  }
  if (recipe.builder->chunks == ChunkRule::Open) {
    request.chunks = recipe.chunks;
  }
  return build_schedule(recipe.builder->name, request);
}

/// The operators on microbatches of one size.
struct SizedRow {
  WorkGraph graph;
  OperatorRow row;

  SizedRow(const Costs& costs, int samples) : graph(WorkGraph::of(costs, samples)), row(graph) {}
  SizedRow(const SizedRow&) = delete;
  SizedRow& operator=(const SizedRow&) = delete;
};

/// A schedule with the best cut found for it.
struct ScheduleCut {
  const SizedRow* on = nullptr;
  std::optional<Recipe> recipe;  ///< none: the request gave the schedule as data
  std::string name;
  CutCost cost;
  ScoredCut cut;

  [[nodiscard]] bool takes_costs() const { return recipe && recipe->builder->takes_costs; }
};

class ScheduleSearch {
 public:
  explicit ScheduleSearch(const PlanRequest& request) : request_(request) {}

  /// Adds the given schedule.
  void add(const Schedule& schedule, int size) {
    const SizedRow& on = sizes_.emplace_back(request_.costs, size);
    found_.push_back({&on, std::nullopt, "as given", cost_of(on, schedule), {}});
  }

  /// Adds every recipe on every size that it takes. Errors: the first refusal, if no recipe takes
  /// any size.
  void add(const std::vector<Recipe>& recipes) {
    std::optional<Error> refused;
    for (const int size : request_.sizes()) {
      const SizedRow& on = sizes_.emplace_back(request_.costs, size);
      for (const Recipe& recipe : recipes) {
        if (!request_.proceeds(
                fmt::format(
                    "the schedule {} on microbatches of {}", recipe.name(), on.graph.samples()),
                !found_.empty())) {
          break;
        }
        try {
          add(recipe, on);
        } catch (const Error& error) {
          if (error.code() == Errc::Internal) {
            throw;
          }
          refused = refused ? refused : error;
        }
      }
    }
    if (found_.empty() && refused) {
      throw Error(*refused);
    }
  }

  /// Keeps the best schedules, judged by their starting cuts.
  void leave_best_starts(std::size_t most) {
    for (ScheduleCut& found : found_) {
      for (const std::vector<int>& start : starts(found)) {
        if (const auto score = score_below(found.cost, start, found.cut.score)) {
          found.cut = {start, *score};
        }
      }
    }
    leave_best(most);
  }

  /// Moves places of each schedule's best start.
  void move_places() {
    for (ScheduleCut& found : found_) {
      if (!proceeds("moves of", found, true)) {
        break;
      }
      found.cut = beam_from(
          found.cost, found.cut.cuts, {.is_over = request_.is_over(part_of("moves of", found))});
    }
    sort();
  }

  /// Runs the beam from every start.
  void find_first() {
    for (ScheduleCut& found : found_) {
      if (!proceeds("cuts for", found, &found != &found_.front())) {
        found_.erase(found_.begin() + (&found - found_.data()), found_.end());
        break;
      }
      found.cut = first_cut(found.cost, options_for(found));
    }
    sort();
    all_first_ = true;
  }

  /// Searches the best `most` schedules to the end. Schedules made for costs alternate with their
  /// cuts.
  void finish(std::size_t most) {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      ScheduleCut& found = found_[i];
      const bool goes_on = i < most && proceeds("the best cut for", found, true);
      if (goes_on && found.takes_costs()) {
        add_by_turns(found);
        continue;
      }
      if (goes_on) {
        found.cut = all_first_ ? refine_cut(found.cost, std::move(found.cut), options_for(found))
                               : find_cut(found.cost, options_for(found));
      }
      candidates_.add(found.cost, found.cut, found.name);
    }
  }

  [[nodiscard]] std::vector<Candidate> take() && {
    return std::move(candidates_).take(request_.memory);
  }

 private:
  [[nodiscard]] static std::string part_of(const char* what, const ScheduleCut& found) {
    return fmt::format("{} {} on microbatches of {}", what, found.name, found.on->graph.samples());
  }

  [[nodiscard]] bool proceeds(const char* what, const ScheduleCut& found, bool found_some) const {
    return request_.proceeds(part_of(what, found), found_some);
  }

  void add(const Recipe& recipe, const SizedRow& on) {
    const int microbatches = request_.batch / on.graph.samples();
    add(recipe, on, built(recipe, request_.devices, microbatches));
    if (recipe.builder->takes_costs) {
      add(recipe, on, built(recipe, request_.devices, microbatches, even_costs(on)));
    }
  }

  void add(const Recipe& recipe, const SizedRow& on, const Schedule& schedule) {
    const std::tuple key(on.graph.samples(), schedule.stages(), schedule_hash(schedule));
    if (seen_.insert(key).second) {
      found_.push_back({&on, recipe, recipe.name(), cost_of(on, schedule), {}});
    }
  }

  [[nodiscard]] CutCost cost_of(const SizedRow& on, const Schedule& schedule) const {
    return {on.row,
            request_.costs.links,
            schedule,
            request_.memory,
            request_.costs.device,
            request_.most_summed};
  }

  /// Returns the costs of stages with equal times.
  [[nodiscard]] Costs even_costs(const SizedRow& on) const {
    return costs_of(request_.costs,
                    on.graph,
                    stages_of(balanced_cut(cut_items(on.graph, 1), request_.devices)));
  }

  /// Returns the starting cuts; if memory is limited, also the cut that holds least for 1F1B.
  [[nodiscard]] std::vector<std::vector<int>> starts(const ScheduleCut& found) {
    const int stages = found.cost.stages();
    std::vector<std::vector<int>> all = starting_cuts(found.on->row, stages);
    if (request_.memory == std::numeric_limits<double>::infinity()) {
      return all;
    }
    const auto [least, is_new] = least_.try_emplace({found.on, stages});
    if (is_new) {
      std::vector<int> in_flight;
      for (int place = 0; place < stages; ++place) {
        in_flight.push_back(std::min(request_.batch / found.on->graph.samples(), stages - place));
      }
      least->second =
          memory_cut(OperatorMemory(found.on->graph, std::move(in_flight)), stages).ends;
      least->second.pop_back();
    }
    all.push_back(least->second);
    return all;
  }

  [[nodiscard]] CutSearchOptions options_for(const ScheduleCut& found) {
    CutSearchOptions options{.beam = {.is_over = request_.is_over(part_of("cuts for", found))}};
    options.starts = starts(found);
    if (!found.cut.cuts.empty()) {
      options.starts.push_back(found.cut.cuts);
    }
    return options;
  }

  void sort() {
    std::ranges::stable_sort(found_, {}, [](const ScheduleCut& found) { return found.cut.score; });
  }

  void leave_best(std::size_t most) {
    sort();
    found_.erase(found_.begin() + static_cast<std::ptrdiff_t>(std::min(most, found_.size())),
                 found_.end());
  }

  /// Alternates between cut and schedule, each for the other, as long as the step gets shorter. For
  /// a builder that adapts its schedule to the costs of the stages.
  void add_by_turns(const ScheduleCut& first) {
    constexpr int kMostTurns = 8;
    CutSearchOptions options = options_for(first);
    std::optional<CutScore> best;
    Schedule schedule = first.cost.schedule();
    const SizedRow& on = *first.on;
    for (int turn = 0; turn < kMostTurns; ++turn) {
      CutCost cost = cost_of(on, schedule);
      const ScoredCut found = find_cut(cost, options);
      if (best && !(found.score < *best)) {
        return;
      }
      candidates_.add(cost, found, first.name);
      best = found.score;
      options.starts = {found.cuts};
      schedule =
          built(*first.recipe,
                request_.devices,
                request_.batch / on.graph.samples(),
                costs_of(request_.costs, on.graph, stages_of_cuts(found.cuts, on.row.size())));
    }
  }

  const PlanRequest& request_;
  std::list<SizedRow> sizes_;  // a list keeps its elements in place
  std::vector<ScheduleCut> found_;
  std::set<std::tuple<int, int, std::uint64_t>> seen_;                 // size, stages and schedule
  std::map<std::pair<const SizedRow*, int>, std::vector<int>> least_;  // cuts by stages
  bool all_first_ = false;                                             // find_first() was called
  CutCandidates candidates_;
};

/// Returns the samples of the schedule's microbatches. Errors: as best_cut_for_schedule.
int size_of(const Schedule& schedule, const PlanRequest& request) {
  const int microbatches = schedule.microbatches();
  const int devices = Layout::of(schedule).ranks();
  if (devices != request.devices) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("the schedule runs on {}, found a request for {}; plan for {} or a multiple",
                    count_text(devices, "device"),
                    request.devices,
                    devices));
  }
  if (microbatches < 1 || request.batch % microbatches != 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("the schedule has {}, which do not divide a batch of {}; "
                            "give a batch that is a multiple",
                            count_text(microbatches, "microbatch"),
                            request.batch));
  }
  if (!schedule.stage_graph().microbatch_sizes().empty()) {
    throw Error(Errc::UsageArgument,
                "the schedule has stages with microbatches of several sizes; give one whose stages "
                "take microbatches of one size, or leave it out and ask graphpipe with "
                "--stage-sizes");
  }
  return request.batch / microbatches;
}

}  // namespace

std::vector<Candidate> best_cut_for_schedule(const PlanRequest& request) {
  ScheduleSearch search(request);
  if (request.schedule) {
    search.add(*request.schedule, size_of(*request.schedule, request));
  } else {
    search.add(recipes_of(find_builder(*request.builder)));
  }
  search.find_first();
  search.finish(kSearchedOfOne);
  return std::move(search).take();
}

std::vector<Candidate> best_cuts_of_builders(const PlanRequest& request, const CutEffort& effort) {
  ScheduleSearch search(request);
  search.add(recipes_for_chains());
  search.leave_best_starts(effort.moved);
  search.move_places();
  search.finish(effort.searched);
  return std::move(search).take();
}

}  // namespace stagecraft
