/// CostModel: how long tasks and transfers take. Measured by the runtime or stated by a user; read
/// by simulate(). A value.
///
/// Units: seconds, or any one unit throughout: results come in the unit of the inputs.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/cell.h"

namespace stagecraft {

/// The durations of one stage's tasks. The defaults are the usual proportions: a backward is two
/// forwards.
struct Durations {
  double forward = 1;
  double backward = 2;
  double backward_input = 1;
  double backward_weight = 1;
  double update = 0;

  [[nodiscard]] double of(CellKind kind) const;
};

struct CostModel {
  Durations usual;                ///< of every stage that `stages` does not reach
  std::vector<Durations> stages;  ///< by stage
  std::optional<double> group;    ///< of an overlap group; absent: the sum of its members
  double transfer = 0;  ///< between two rows, where `transfers` has no entry; nothing within a row
  std::map<std::pair<int, int>, double>
      transfers;  ///< by stage edge (producer, consumer), either direction

  [[nodiscard]] double duration(const Cell& cell) const;
  [[nodiscard]] double transfer_between(StageId producer, StageId consumer) const;

  /// Every cell takes one column and transfers take none: the time in which arrays are drawn.
  [[nodiscard]] static CostModel unit();
};

}  // namespace stagecraft
