/// OperatorMemory: what stages of consecutive operators hold, where the place of a stage says how
/// many microbatches it has in flight.
///
///     parameters + (kept + received) x in flight
///         + what its neediest operator needs beyond what is kept by then
///
/// as the simulator adds it up (memory_model.h), so that the two agree where the schedule has as
/// many in flight as is said here. A parameter counts once in a stage, and so does a result of
/// another stage, however many operators use it; a result is kept until the backward, like input of
/// the batch. Read by memory_cut(). Views the graph; any thread may read. Units: bytes.
/// OM-1: a stage never holds less for one operator more at its end.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/scheduler/planners/work_graph.h"

namespace stagecraft {

class OperatorMemory {
 public:
  /// `in_flight`: by place, at least 1; as many places as there will be stages.
  OperatorMemory(const WorkGraph& graph, std::vector<int> in_flight);

  [[nodiscard]] int size() const { return graph_->size(); }
  /// Whether fill_first() misses no cut: every place keeps as many in flight (else an operator may
  /// be too much for one place and not for the next), and no operator hands on more than it keeps
  /// (else a stage that starts later may hold more).
  [[nodiscard]] bool filling_is_exact() const { return filling_is_exact_; }

  class Stage {
   public:
    Stage(const OperatorMemory& memory, int in_flight, int first)
        : memory_(&memory), in_flight_(in_flight), first_(first) {}
    /// Bytes with this operator too. Requires: each follows the one before.
    [[nodiscard]] double append(int op);

   private:
    const OperatorMemory* memory_;
    int in_flight_;
    int first_;
    double parameters_ = 0;
    double received_ = 0;  // of other stages and of the batch
    double kept_ = 0;
    double peak_ = 0;  // of what operators keep and need, while one microbatch passes through
  };
  [[nodiscard]] Stage stage_at(int place, int first) const {
    return {*this, in_flight_[static_cast<std::size_t>(place)], first};
  }
  /// What every stage with this operator holds at least.
  [[nodiscard]] double least(int op) const;

 private:
  /// Of a parameter or a result.
  struct Use {
    int made = -1;    ///< by this operator; -1: a parameter
    int before = -1;  ///< the operator that used it last; -1: none
    double bytes = 0;
  };
  using Uses = std::vector<std::vector<Use>>;  // by operator

  void list_results();
  /// What a stage from `first` on has to hold for the uses of one more operator.
  [[nodiscard]] static double fetched(const std::vector<Use>& uses, int first);

  const WorkGraph* graph_;
  std::vector<int> in_flight_;
  int fewest_in_flight_ = 1;
  Uses parameters_, results_;
  bool filling_is_exact_ = true;
};

}  // namespace stagecraft
