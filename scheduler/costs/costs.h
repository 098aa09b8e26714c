/// Costs holds the times of tasks and transfers and the bytes of rows, in the sections of a
/// costs.json. The runtime measures it or a user states it. A value.
///
/// simulate() reads stages, links and devices; builders that use costs read stages and links; the
/// memory rule reads the bytes of stages and devices; planners read the operators. None of them
/// reads the device on which costs were measured.
///
/// Units: seconds and bytes, or any other single unit of time: results have the unit of the inputs.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/costs/operator_cost.h"
#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Describes the machine and the conditions of the measurement.
struct CostDevice {
  std::string name;  ///< empty: not known
  int threads = 0;   ///< inside operators; 0: not known
  /// The processors of one machine that all rows share, each row with its threads; 0: every row has
  /// its own.
  int processors = 0;
  /// Interquartile range over the median of a microbatch's time, forward and backward; 0: not
  /// known.
  double noise = 0;
  double task = 0;   ///< seconds that a task takes in addition to its operators
  double step = 0;   ///< seconds that a step takes in addition to its tasks
  double split = 1;  ///< time of a backward in halves (I and W) over its time as a whole
  /// Bytes that a microbatch keeps between I and W, over the bytes before I. I frees the values
  /// that only I needs, and gradients wait for W.
  double split_bytes = 1;
  std::string precision;  ///< in which operators computed: "fp32", "bf16"; empty: not known

  friend bool operator==(const CostDevice&, const CostDevice&) = default;
};

/// Durations holds the durations of one stage's tasks. The defaults are the usual proportions: a
/// backward takes as long as two forwards.
struct Durations {
  double forward = 1;
  double backward = 2;
  double backward_input = 1;
  double backward_weight = 1;
  double update = 0;
  double recompute = 0;  ///< runs before a backward or its input half, as part of that task

  [[nodiscard]] double of(CellKind kind) const;
  /// Returns the durations on a device that is so many times as fast.
  [[nodiscard]] Durations at_speed(double speed) const;

  friend bool operator==(const Durations&, const Durations&) = default;
};

/// StageCosts holds the durations of the stages' tasks and the bytes that stages hold.
struct StageCosts {
  using Pair = std::pair<int, int>;

  Durations usual;                ///< of every stage that `each` does not list
  std::vector<Durations> each;    ///< by stage
  std::optional<double> group;    ///< of an overlap group; absent: the sum of its members
  std::map<Pair, double> groups;  ///< of a group of two, by their stages in either order
  MemoryModel memory;             ///< without its budget, which is not part of a costs.json

  bool columns = false;  ///< a cell takes its time even if it does nothing; not in a file

  [[nodiscard]] const Durations& of_stage(StageId stage) const;
  /// Returns how long a cell takes. Tasks that do nothing take no time; if I does nothing, W takes
  /// the time of both.
  [[nodiscard]] double duration(const Cell& cell, const StageGraph& graph) const;

  friend bool operator==(const StageCosts&, const StageCosts&) = default;

 private:
  [[nodiscard]] double duration(const Task& task, const StageGraph& graph) const;
};

/// Link is a connection between two rows.
struct Link {
  double latency = 0;
  double bandwidth = std::numeric_limits<double>::infinity();  ///< bytes per unit of time

  [[nodiscard]] double time_of(double bytes) const { return latency + bytes / bandwidth; }

  friend bool operator==(const Link&, const Link&) = default;
};

/// Returns a link as slow as the slower of both.
[[nodiscard]] Link slower(const Link& one, const Link& other);

/// LinkCosts holds the times of transfers.
struct LinkCosts {
  using Pair = std::pair<int, int>;

  Link usual;                         ///< between two rows that `each` does not list
  std::optional<Link> sums;           ///< for each part of a sum of gradients; absent: `usual`
  std::map<Pair, Link> each;          ///< by (from row, to row); within a row no link is used
  double bytes = 0;                   ///< of a transfer that `edge_bytes` does not list
  std::map<Pair, double> edge_bytes;  ///< by stage edge (producer, consumer), either direction

  [[nodiscard]] const Link& of_sums() const { return sums ? *sums : usual; }
  /// Returns the link from one row to another: `otherwise` unless `each` lists it.
  [[nodiscard]] const Link& between(int from_row, int to_row, const Link& otherwise) const;
  [[nodiscard]] const Link& between(int from_row, int to_row) const {
    return between(from_row, to_row, usual);
  }
  /// Returns how long a transfer over a stage edge takes between two rows; 0 within a row.
  [[nodiscard]] double transfer(Pair edge, int from_row, int to_row) const;

  friend bool operator==(const LinkCosts&, const LinkCosts&) = default;
};

/// DeviceTraits tells how a device differs from the one on which the costs were measured.
struct DeviceTraits {
  double speed = 1;  ///< tasks take 1 / speed of their durations
  /// Bytes that plans may use there, whatever they may use elsewhere; infinite: as elsewhere.
  double memory = std::numeric_limits<double>::infinity();

  friend bool operator==(const DeviceTraits&, const DeviceTraits&) = default;
};

struct Costs {
  CostDevice device;
  std::map<int, DeviceTraits> devices;  ///< by rank; the others are like the measured one
  std::vector<OperatorCost> operators;  ///< ascending by id
  int samples = 1;                      ///< in the microbatch that `operators` was measured on
  int batch = 0;                        ///< samples of a step of the data; 0: not known
  /// The operators' times and bytes on microbatches with other numbers of samples.
  std::map<int, std::vector<OperatorCost>> operators_at;
  std::vector<ParameterCost> parameters;
  StageCosts stages;
  LinkCosts links;

  /// Returns unit costs: every cell takes one column and transfers take no time. Arrays are drawn
  /// in this time.
  [[nodiscard]] static Costs unit();

  friend bool operator==(const Costs&, const Costs&) = default;
};

}  // namespace stagecraft
