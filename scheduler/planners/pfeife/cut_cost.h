/// CutCost computes the time of one schedule's step with a cut, and checks the memory of its rows.
///
/// The stages of the schedule must be a chain, once or once per replica, on any rows; backwards may
/// be whole or split. Channels are free (channels.h). A CutCost is made for one schedule and called
/// for very many cuts. It views the row of operators, which must outlive it. One thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", sections 3.2 and 3.5. The paper
/// holds the bytes that stages read and receive for all microbatches of a step. We hold them for
/// the microbatches in flight, and the caller decides how much of a device's memory to use.
/// KU-1: a step's time equals the result of simulate() with costs_of(), plus the rows' updates.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/planners/pfeife/operator_row.h"
#include "stagecraft/scheduler/planners/pfeife/step_graph.h"
#include "stagecraft/scheduler/planners/request/update_bytes.h"

namespace stagecraft {

class CutCost {
 public:
  /// Peak holds the most bytes that the fullest row holds at once.
  struct Peak {
    int row = 0;
    double bytes = 0;
  };

  /// `memory`: bytes that a row may hold. `device`: times of tasks in addition to their operators,
  /// and the extra time of split backwards. `most_summed`: as in PlanRequest.
  /// Errors: ScheduleInvalid for a schedule that does not run on a chain of its stages;
  /// UsageArgument for one with more stages than operators.
  CutCost(const OperatorRow& row,
          const LinkCosts& links,
          Schedule schedule,
          double memory,
          CostDevice device = {},
          double most_summed = std::numeric_limits<double>::infinity());

  [[nodiscard]] const OperatorRow& row() const { return *row_; }
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }
  /// Returns the number of the model's stages; a cut has one place less.
  [[nodiscard]] int stages() const { return layout_.model_stages(); }
  [[nodiscard]] double memory() const { return memory_; }

  /// Returns the time of a step. Cost: linear in tasks and waits; allocates nothing after all edges
  /// between stages have appeared.
  double step_time(std::span<const int> cuts);
  /// Returns a lower bound of a step with this cut: the computing time of a row, after the stages
  /// before its first task and before those after its last. Cost: linear in stages.
  [[nodiscard]] double bound(std::span<const int> cuts) const;
  /// Returns the events that determine that step's time.
  std::vector<StepEvent> critical_path(std::span<const int> cuts);
  /// Returns the peak: the fixed bytes of stages, the bytes that their microbatches in flight keep,
  /// read and received, and the bytes that one running task needs; or the fixed bytes with those of
  /// gradients that are summed over copies and ties.
  Peak peak(std::span<const int> cuts);

 private:
  /// Way is an edge of the step's graph: its two stages of the model, and the links between their
  /// rows.
  struct Way {
    std::size_t pair = 0;
    Link forward;
    Link backward;
  };

  /// RowTasks counts the tasks of a row, for a stage of the model that it runs.
  struct RowTasks {
    struct Count {
      int stage = 0;
      std::array<int, 4> tasks{};  // F, B, I, W
    };
    std::vector<Count> counts;
    int first = 0;            // stage of the first task
    std::optional<int> last;  // stage of the last task, if it is a backward and none is split
  };

  void count_tasks();
  void find_crossing(std::span<const int> cuts);
  void set_weights(StepGraph& graph, const std::vector<Way>& ways, std::span<const int> cuts) const;
  [[nodiscard]] StageGraph stages_with(const std::vector<StageGraph::Edge>& edges) const;
  [[nodiscard]] std::vector<Way> ways_of(const StepGraph& graph) const;
  [[nodiscard]] std::size_t pair(int from, int to) const {
    return static_cast<std::size_t>(from * stages() + to);
  }
  void widen();
  [[nodiscard]] UpdateBytes update_bytes(std::span<const int> cuts,
                                         const std::vector<double>& trained) const;

  const OperatorRow* row_;
  LinkCosts links_;
  Schedule schedule_;
  double memory_;
  CostDevice device_;
  double most_summed_;
  Layout layout_;
  Placement placement_;
  bool updates_listed_ = false;  // whether the schedule itself lists updates
  std::vector<RowTasks> row_tasks_;

  std::vector<StageGraph::Edge> edges_;  // between the model's stages: all that cuts have had
  std::vector<char> known_;              // by pair: whether it is in edges_
  StageGraph stage_graph_;               // of the schedule's stages
  std::optional<StepGraph> step_;
  std::vector<Way> ways_;

  std::vector<double> bytes_;  // by pair: bytes that cross in the current cut; negative: none
  std::vector<std::size_t> passing_;
  MemoryModel model_;
};

}  // namespace stagecraft
