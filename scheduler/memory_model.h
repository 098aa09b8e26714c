/// MemoryModel: the bytes a row holds, so that a schedule can be refused before it runs out of them
/// (V30), and RowMemory, which counts them while a row's list runs.
///
/// Measured by the runtime or stated by a user. Values; lists shorter than the stages count as
/// zero beyond. Units: bytes.
#pragma once

#include <span>
#include <vector>

#include "stagecraft/scheduler/cell.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct MemoryModel {
  std::vector<double> fixed;        ///< by stage: weights, gradients, optimizer state
  std::vector<double> activations;  ///< by stage: kept from F to B, or to W when split
  std::vector<double> transient;    ///< by stage: only while one of its tasks runs, a replay too
  std::vector<double> replayed;     ///< by stage: made anew by I where it recomputes, kept until W
  /// By stage: kept from I to W, a replay too; absent: what `input_release` leaves.
  std::vector<double> waiting;
  std::vector<double> input_transient;   ///< by stage: only while I runs; absent: `transient`
  std::vector<double> weight_transient;  ///< by stage: only while W runs behind I; likewise
  /// Share of the activation and replay that I frees before W; below 0, what it adds to them as
  /// gradients wait for W. For stages of which `waiting` says nothing.
  double input_release = 0;
  double budget = 0;  ///< of each row

  friend bool operator==(const MemoryModel&, const MemoryModel&) = default;
};

/// What one row holds while its list runs. Views model and graph.
class RowMemory {
 public:
  RowMemory(const MemoryModel& model, const StageGraph& graph) : model_(&model), graph_(&graph) {}

  /// The stage lives on this row.
  void hold_fixed(StageId stage);
  /// Runs one cell and returns the bytes held meanwhile: a group's forwards are kept before its
  /// backwards release. Requires: stages of the graph.
  double run(std::span<const Task> tasks);

  [[nodiscard]] double held() const { return held_; }

 private:
  [[nodiscard]] double released(const Task& task) const;  ///< below 0: what it adds
  [[nodiscard]] double waiting(StageId stage) const;      ///< kept from I to W
  [[nodiscard]] bool splits(const Task& task) const;
  [[nodiscard]] double needed(const Task& task) const;  ///< only while it runs

  const MemoryModel* model_;
  const StageGraph* graph_;
  double held_ = 0;
};

}  // namespace stagecraft
