/// Difference holds the differences of two schedules on each device, and the effect on time and
/// memory.
///
/// Both train one model. If one cuts it into more stages, each of its stages is less work. A
/// costs.json knows this. Without one, durations and activations of its stages are weighted so that
/// a forward and backward of the whole model are the same on both sides.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {

/// DifferentSide is one of the two schedules, as workers follow it.
struct DifferentSide {
  ScheduleFile file;
  Schedule list;
  double weight = 1;                 ///< of a stage, in stages of the side with fewer
  std::optional<Timeline> timeline;  ///< of a valid schedule, with its stages weighted
  std::size_t violations = 0;

  [[nodiscard]] int model_stages() const;                 ///< of one replica
  [[nodiscard]] double in_flight(std::size_t row) const;  ///< at its peak, weighted
};

/// DifferentRow is the first task in which a row differs; "(end)" if one side has none.
struct DifferentRow {
  std::size_t row = 0;
  std::size_t position = 0;  ///< in the list
  std::string task_a;
  std::string task_b;
};

struct Difference {
  DifferentSide a;
  DifferentSide b;
  std::string beside;  ///< differences outside the cells: a sentence without its end, or nothing
  std::vector<DifferentRow> rows;
  bool bytes = false;   ///< the costs know the bytes that are held
  bool stated = false;  ///< a costs.json gives each stage's costs, so nothing is weighted

  [[nodiscard]] bool none() const { return beside.empty() && rows.empty(); }
  [[nodiscard]] bool simulated() const { return a.timeline && b.timeline; }
};

/// Compares the schedules. `stated`: the costs come from a costs.json.
[[nodiscard]] Difference find_difference(ScheduleFile a,
                                         ScheduleFile b,
                                         const Costs& costs,
                                         bool stated);

/// Returns the text. Requires: there is a difference.
[[nodiscard]] std::string difference_text(const Difference& difference);

[[nodiscard]] nlohmann::ordered_json difference_json(const Difference& difference);

}  // namespace stagecraft::tools
