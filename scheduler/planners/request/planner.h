/// Planner chooses a cut of a model and a schedule to train it by. All planners share this
/// interface.
///
///     PlanRequest request{.costs = costs, .devices = 4, .batch = 32, .memory = 16e9};
///     const std::vector<Candidate> found = find_planner("pfeife").search(request);
///
/// The simulator judges every answer, independently of the planner's own model (proposal.h). Pure:
/// equal requests give equal answers, unless `goes_on` ends a search; no I/O, clock or globals. Any
/// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/planners/request/work_graph.h"
#include "stagecraft/scheduler/simulate/event_order.h"
#include "stagecraft/scheduler/strategy/sharing.h"

namespace stagecraft {

struct PlanRequest {
  Costs costs;  ///< with operators
  int devices = 1;
  int batch = 1;                                            ///< samples of a step
  double memory = std::numeric_limits<double>::infinity();  ///< bytes of every device
  /// Allowed samples of a microbatch, ascending; each divides the batch. Empty: the measured sizes
  /// that divide it.
  std::vector<int> microbatch_sizes;
  bool stage_sizes = false;      ///< stages may take microbatches of different sizes
  bool copies_of_stages = true;  ///< stages may have different numbers of copies
  bool may_share = false;        ///< copies may share what they hold, if nothing else fits
  /// The most bytes of a stage that its copies in the schedule add up at once.
  double most_summed = std::numeric_limits<double>::infinity();
  /// True if rows compute and communicate in turn (pfeife/phase_barriers.h).
  bool phases = false;
  /// The orders that every plan keeps. Schedules that cannot keep them are no candidates.
  std::vector<EventOrder> orders;
  bool shared_channels = false;  ///< one half-duplex channel between every two devices
  /// The schedule, if the request asks only for the cut: a builder's name, or a schedule.
  std::optional<std::string> builder;
  std::optional<Schedule> schedule;
  int most_stages = 0;  ///< 0: no limit
  /// Operators by id, each with its required device. Planners ignore them, and keep joined
  /// operators of the costs together.
  std::vector<std::pair<int, int>> pinned;
  /// The search calls it with the name of a part, before and during that part. It returns false
  /// after the search has taken long enough.
  std::function<bool(std::string_view what)> goes_on;

  /// Returns whether a search begins its next part. It always does if it has found nothing yet.
  [[nodiscard]] bool proceeds(std::string_view what, bool found_some) const {
    return !goes_on || goes_on(what) || !found_some;
  }
  /// Returns a function for loops inside the named part: it returns whether the search has taken
  /// long enough. The request must outlive it.
  [[nodiscard]] std::function<bool()> is_over(std::string what) const {
    return goes_on ? [this, what = std::move(what)] { return !goes_on(what); }
                   : std::function<bool()>();
  }
  [[nodiscard]] bool allows_stages(int stages) const {
    return most_stages == 0 || stages <= most_stages;
  }

  /// Returns the sizes. Errors: UsageArgument for no devices or batch, sizes that do not divide the
  /// batch.
  [[nodiscard]] std::vector<int> sizes() const;
  /// Returns the most stages that the operators can make: joined operators are one piece.
  [[nodiscard]] int pieces() const;
  /// Returns the reason why a planner that gives every device an operator cannot answer; nothing if
  /// it can.
  [[nodiscard]] std::optional<std::string> lacks_pieces(std::string_view planner) const;
};

/// Candidate is a cut and a schedule for it.
struct Candidate {
  std::string planner;
  StageOperators stages;    ///< stages are numbered by their place here
  int microbatch_size = 1;  ///< samples, of the smallest
  /// Samples of a microbatch by stage, multiples of microbatch_size; empty: all microbatch_size.
  std::vector<int> stage_sizes;
  /// One row per device; with copies, its places name the devices of each row.
  Schedule schedule = Schedule(Schedule::Form::List, {});
  /// "1f1b", "pfeife loops=2 block=4 extra=1,0", "1f1b dp=2 zero=1"
  std::string schedule_name;
  Sharing sharing = Sharing::Nothing;  ///< what copies of a stage share

  [[nodiscard]] int size_of(std::size_t stage) const {
    return stage_sizes.empty() ? microbatch_size : stage_sizes[stage];
  }
  /// Returns stage_sizes in the unit of stage graphs: microbatches of the smallest size.
  [[nodiscard]] std::vector<int> sizes_in_units() const {
    std::vector<int> units;
    for (const int size : stage_sizes) {
      units.push_back(size / microbatch_size);
    }
    return units;
  }
};

/// Returns whether a request leaves the builder open, or asks for this one or its counterpart for
/// stage graphs ("dag-1f1b").
[[nodiscard]] inline bool takes_builder(const PlanRequest& request, std::string_view name) {
  return !request.builder || *request.builder == name ||
         (request.builder->starts_with("dag-") && request.builder->substr(4) == name);
}

struct PlannerInfo {
  std::string_view name;
  std::string_view summary;
  /// Returns the reason why the planner cannot answer the request; nothing if it can.
  std::optional<std::string> (*refuses)(const PlanRequest&) = nullptr;
  /// Returns the best candidate first, by the planner's own model, followed by other good ones.
  /// Errors: PlanInfeasible if nothing fits the devices' memory, with the tightest stage and the
  /// bytes that it lacks.
  std::vector<Candidate> (*search)(const PlanRequest&) = nullptr;
};

}  // namespace stagecraft
