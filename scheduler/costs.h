/// Costs: how long tasks and transfers take and how many bytes rows hold, in the four sections of a
/// costs.json. Measured by the runtime or stated by a user. A value.
///
/// simulate() and the builders that look at costs take stages and links, the memory rule what
/// stages hold, planners the operators; what costs were measured on means nothing to any of them.
///
/// Units: seconds and bytes, or any one unit of time throughout: results come in the unit of the
/// inputs.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/cell.h"
#include "stagecraft/scheduler/memory_model.h"
#include "stagecraft/scheduler/operator_cost.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// What the figures were measured on.
struct CostDevice {
  std::string name;  ///< empty: not known
  int threads = 0;   ///< inside operators; 0: not known
  /// Of one machine that all rows share, each with its threads; 0: every row has its own.
  int processors = 0;
  /// Of a microbatch's time, forward and backward: the interquartile range over the median; 0: not
  /// known.
  double noise = 0;
  double task = 0;   ///< seconds that a task takes beside its operators
  double step = 0;   ///< seconds that a step takes beside its tasks
  double split = 1;  ///< how many times as long a backward takes in halves, I and W, as whole
  /// How many times as many bytes a microbatch keeps between I and W as before: I frees what it
  /// alone needs, and gradients wait for W.
  double split_bytes = 1;

  friend bool operator==(const CostDevice&, const CostDevice&) = default;
};

/// The durations of one stage's tasks. The defaults are the usual proportions: a backward is two
/// forwards.
struct Durations {
  double forward = 1;
  double backward = 2;
  double backward_input = 1;
  double backward_weight = 1;
  double update = 0;
  double recompute = 0;  ///< before a backward or its input half, and part of that task

  [[nodiscard]] double of(CellKind kind) const;

  friend bool operator==(const Durations&, const Durations&) = default;
};

/// What the tasks of stages take, and what stages hold.
struct StageCosts {
  using Pair = std::pair<int, int>;

  Durations usual;                ///< of every stage that `each` does not reach
  std::vector<Durations> each;    ///< by stage
  std::optional<double> group;    ///< of an overlap group; absent: the sum of its members
  std::map<Pair, double> groups;  ///< of a group of two, by their stages in either order
  MemoryModel memory;             ///< its budget is no part of a costs.json

  bool columns = false;  ///< a cell has its time whether or not its tasks do anything; likewise

  [[nodiscard]] const Durations& of_stage(StageId stage) const;
  /// Tasks that do nothing take no time; where that is I, W takes the time of both.
  [[nodiscard]] double duration(const Cell& cell, const StageGraph& graph) const;

  friend bool operator==(const StageCosts&, const StageCosts&) = default;

 private:
  [[nodiscard]] double duration(const Task& task, const StageGraph& graph) const;
};

/// What lies between two rows.
struct Link {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per unit of time

  [[nodiscard]] double time_of(double bytes) const { return latency + bytes / bandwidth; }

  friend bool operator==(const Link&, const Link&) = default;
};

/// What transfers take.
struct LinkCosts {
  using Pair = std::pair<int, int>;

  Link usual;                         ///< between two rows, where `each` has no entry
  std::map<Pair, Link> each;          ///< by (from row, to row); nothing lies within a row
  double bytes = 0;                   ///< of a transfer, where `edge_bytes` has no entry
  std::map<Pair, double> edge_bytes;  ///< by stage edge (producer, consumer), either direction

  /// How long a transfer over a stage edge is on its way between two rows; 0 within a row.
  [[nodiscard]] double transfer(Pair edge, int from_row, int to_row) const;

  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

struct Costs {
  CostDevice device;
  std::vector<OperatorCost> operators;  ///< ascending by id
  int samples = 1;                      ///< in the microbatch that these are of
  int batch = 0;                        ///< samples of a step of the data; 0: not known
  /// The operators' times and bytes on microbatches of other numbers of samples.
  std::map<int, std::vector<OperatorCost>> operators_at;
  std::vector<ParameterCost> parameters;
  StageCosts stages;
  LinkCosts links;

  /// Every cell takes one column and transfers take none: the time in which arrays are drawn.
  [[nodiscard]] static Costs unit();

  friend bool operator==(const Costs&, const Costs&) = default;
};

}  // namespace stagecraft
