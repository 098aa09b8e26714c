/// OperatorRow holds the operators of a model in the order of the forward, for cuts into stages of
/// neighbors. It returns the costs of a stage and the bytes that cross between two stages.
///
///     operators  0 1 2 | 3 4 | 5 6 7        cuts 3, 5: three stages
///
/// It is made once from a WorkGraph, which must outlive it; planners call it for very many cuts. A
/// value; any thread may read. Units: as in the graph.
/// OW-1: cuts ascend strictly within (0, size()), so no stage is empty. Callers keep this.
/// OW-2: a value that a stage reads several times crosses to it once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/request/work_graph.h"

namespace stagecraft {

class OperatorRow {
 public:
  explicit OperatorRow(const WorkGraph& graph);

  [[nodiscard]] int size() const { return graph_->size(); }
  [[nodiscard]] const WorkGraph& graph() const { return *graph_; }

  /// Returns the times of the stage [first, last). Cost: constant.
  [[nodiscard]] StageWork times(int first, int last) const;
  /// Returns times and bytes of the stage. Cost: linear in the stage.
  [[nodiscard]] StageWork work(int first, int last) const;

  /// Return the longest path through the operators before `op`. In a stage that begins with the
  /// operator, no forward starts sooner after the step's start, and no whole backward ends later
  /// before the step's end.
  [[nodiscard]] double forward_before(int op) const {
    return forward_before_[static_cast<std::size_t>(op)];
  }
  [[nodiscard]] double backward_before(int op) const {
    return backward_before_[static_cast<std::size_t>(op)];
  }

  /// Calls visit(its operators, ascending; bytes of its gradient) for every parameter that trains
  /// and that several operators use.
  template <class Visit>
  void for_each_shared(Visit&& visit) const {
    for (const int p : shared_) {
      const auto at = static_cast<std::size_t>(p);
      visit(std::span<const int>(users_[at]), graph_->all_parameters()[at].trained());
    }
  }

  /// Calls visit(from stage, to stage, bytes) once for every value and every stage that reads it
  /// from another.
  /// Cost: about linear in the values that cross a cut.
  template <class Visit>
  void for_each_crossing(std::span<const int> cuts, Visit&& visit) const;

 private:
  /// Sums holds the summed costs of the operators before a place.
  struct Sums {
    double forward = 0, backward_input = 0, backward_weight = 0, update = 0;
  };

  const WorkGraph* graph_;
  std::vector<Sums> before_;                              // by operator, and one more
  std::vector<double> forward_before_, backward_before_;  // by operator
  std::vector<std::vector<int>> crossing_;  // by operator: results that it or a later one reads
                                            // of an earlier one, the last producer first
  std::vector<std::vector<int>> users_;     // by parameter: its operators, ascending
  std::vector<int> shared_;                 // parameters that train and have several users
};

/// Return the first operator of the stage, and the one after its last.
[[nodiscard]] inline int stage_begin(std::span<const int> cuts, std::size_t stage) {
  return stage == 0 ? 0 : cuts[stage - 1];
}
[[nodiscard]] inline int stage_end(std::span<const int> cuts, std::size_t stage, int operators) {
  return stage == cuts.size() ? operators : cuts[stage];
}

/// Returns the operators of every stage.
[[nodiscard]] StageOperators stages_of_cuts(std::span<const int> cuts, int operators);

template <class Visit>
void OperatorRow::for_each_crossing(std::span<const int> cuts, Visit&& visit) const {
  const std::span<const WorkGraph::Result> results = graph_->results();
  for (std::size_t stage = 0; stage < cuts.size(); ++stage) {
    const int begin = stage_begin(cuts, stage);
    for (const int v : crossing_[static_cast<std::size_t>(cuts[stage])]) {
      const WorkGraph::Result& value = results[static_cast<std::size_t>(v)];
      if (value.producer < begin) {
        break;  // visited where its own stage ends, and so were those after it
      }
      auto reader = std::ranges::lower_bound(value.consumers, cuts[stage]);
      while (reader != value.consumers.end()) {
        const auto next = std::ranges::upper_bound(cuts, *reader);
        visit(static_cast<int>(stage), static_cast<int>(next - cuts.begin()), value.bytes);
        if (next == cuts.end()) {
          break;
        }
        reader = std::lower_bound(reader, value.consumers.end(), *next);
      }
    }
  }
}

}  // namespace stagecraft
