/// CostModel: how long tasks and transfers take. Measured by the runtime or stated by a user; read
/// by simulate() and by builders that look at costs. A value.
///
/// Units: seconds and bytes, or any one unit of time throughout: results come in the unit of the
/// inputs.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/cell.h"
#include "stagecraft/scheduler/stage_graph.h"

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

  friend bool operator==(const Durations&, const Durations&) = default;
};

/// What lies between two rows.
struct Link {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per unit of time

  [[nodiscard]] double time_of(double bytes) const { return latency + bytes / bandwidth; }

  friend bool operator==(const Link&, const Link&) = default;
};

struct CostModel {
  using Pair = std::pair<int, int>;

  Durations usual;                    ///< of every stage that `stages` does not reach
  std::vector<Durations> stages;      ///< by stage
  std::optional<double> group;        ///< of an overlap group; absent: the sum of its members
  std::map<Pair, double> groups;      ///< of a group of two, by their stages in either order
  Link link;                          ///< between two rows, where `links` has no entry
  std::map<Pair, Link> links;         ///< by (from row, to row); nothing lies within a row
  double bytes = 0;                   ///< of a transfer, where `edge_bytes` has no entry
  std::map<Pair, double> edge_bytes;  ///< by stage edge (producer, consumer), either direction

  bool columns = false;  ///< a cell has its time whether or not its tasks do anything

  [[nodiscard]] const Durations& of_stage(StageId stage) const;
  /// Tasks that do nothing take no time; where that is I, W takes the time of both.
  [[nodiscard]] double duration(const Cell& cell, const StageGraph& graph) const;
  /// How long a transfer over a stage edge is on its way between two rows; 0 within a row.
  [[nodiscard]] double transfer(Pair edge, int from_row, int to_row) const;

  /// Every cell takes one column and transfers take none: the time in which arrays are drawn.
  [[nodiscard]] static CostModel unit();

  friend bool operator==(const CostModel&, const CostModel&) = default;

 private:
  [[nodiscard]] double duration(const Task& task, const StageGraph& graph) const;
};

}  // namespace stagecraft
