/// MemoryModel holds the bytes that stages need, so that a schedule can be refused before a row
/// runs out of memory (V30). RowMemory counts the bytes while a row's list runs.
///
/// The runtime measures them or a user states them. Values; a list shorter than the stages counts
/// as zero for the rest. Units: bytes.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/strategy/sharing.h"

namespace stagecraft {

struct MemoryModel {
  std::vector<double> fixed;        ///< by stage: weights, gradients, optimizer state
  std::vector<double> trained;      ///< by stage: weights that train, part of `fixed`
  std::vector<double> states;       ///< by stage: optimizer state, part of `fixed`
  std::vector<double> activations;  ///< by stage: kept from F to B, or to W if split
  std::vector<double> transient;    ///< by stage: only while a task runs, or a replay
  std::vector<double> replayed;     ///< by stage: recomputed by I and kept until W
  /// By stage: kept from I to W, a replay included; absent: the bytes that `input_release` leaves.
  std::vector<double> waiting;
  std::vector<double> input_transient;   ///< by stage: only while I runs; absent: `transient`
  std::vector<double> weight_transient;  ///< by stage: only while W runs after I; likewise
  /// The share of activation and replay that I frees before W. A negative share adds bytes:
  /// gradients that wait for W. Used for stages without `waiting`.
  double input_release = 0;
  double budget = 0;            ///< of each row
  std::vector<double> budgets;  ///< by row; absent: `budget`

  [[nodiscard]] double budget_of(std::size_t row) const {
    return row < budgets.size() ? budgets[row] : budget;
  }

  friend bool operator==(const MemoryModel&, const MemoryModel&) = default;
};

/// RowMemory tracks the bytes that one rank of a row holds while the row's list runs. `units`: of
/// the rank (LA-3); it keeps the activations of each. Views model and graph.
class RowMemory {
 public:
  RowMemory(const MemoryModel& model, const StageGraph& graph, int units = 1)
      : model_(&model), graph_(&graph), units_(units) {}

  /// Adds the fixed bytes of a stage that lives on this row; of `copies` that share so much, the
  /// bytes of one.
  void hold_fixed(StageId stage, Sharing sharing = Sharing::Nothing, int copies = 1);
  /// Runs one cell and returns the bytes that the row holds meanwhile. The forwards of a group are
  /// kept before its backwards release.
  /// Requires: stages of the graph.
  double run(std::span<const Task> tasks);

  [[nodiscard]] double held() const { return held_; }

 private:
  [[nodiscard]] double released(const Task& task) const;  ///< negative: bytes that it adds
  [[nodiscard]] double waiting(StageId stage) const;      ///< kept from I to W
  [[nodiscard]] bool splits(const Task& task) const;
  [[nodiscard]] double needed(const Task& task) const;  ///< only while it runs

  const MemoryModel* model_;
  const StageGraph* graph_;
  int units_;
  double held_ = 0;
};

}  // namespace stagecraft
