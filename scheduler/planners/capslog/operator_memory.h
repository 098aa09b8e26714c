/// OperatorMemory computes the bytes of stages of consecutive operators. The place of a stage gives
/// the number of microbatches that it has in flight.
///
///     parameters + (kept + received) x in flight + max(0, peak - kept)
///
/// The peak is the most that operators keep and need while one microbatch passes through.
///
/// It adds up bytes as the simulator does (memory_model.h), so the two agree if the schedule has
/// the same number in flight. A parameter counts once per stage, and so does a result of another
/// stage, for any number of operators that use it. A result is kept until the backward, and so is
/// input of the batch. memory_cut() reads it. It views the graph; any thread may read. Units:
/// bytes.
/// OM-1: a stage never holds less with one more operator at its end.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/scheduler/planners/request/work_graph.h"

namespace stagecraft {

class OperatorMemory {
 public:
  /// `in_flight`: by place, at least 1; one entry per stage of the cut.
  OperatorMemory(const WorkGraph& graph, std::vector<int> in_flight);

  [[nodiscard]] int size() const { return graph_->size(); }
  /// Returns whether fill_first() finds a cut whenever there is one. This holds if all places have
  /// the same number in flight, and if each operator but the first and the last hands on at most
  /// the bytes that it keeps, reads from the batch and uses last. Otherwise an operator may fit at
  /// a later place only, or a stage that starts later may hold more.
  [[nodiscard]] bool filling_is_exact() const { return filling_is_exact_; }

  class Stage {
   public:
    Stage(const OperatorMemory& memory, int in_flight, int first)
        : memory_(&memory), in_flight_(in_flight), first_(first) {}
    /// Returns the bytes with this operator added. Requires: operators are appended in order.
    [[nodiscard]] double append(int op);

   private:
    const OperatorMemory* memory_;
    int in_flight_;
    int first_;
    double parameters_ = 0;
    double received_ = 0;  // from other stages and from the batch
    double kept_ = 0;
    double peak_ = 0;  // most that operators keep and need while one microbatch passes through
  };
  [[nodiscard]] Stage stage_at(int place, int first) const {
    return {*this, in_flight_[static_cast<std::size_t>(place)], first};
  }
  /// Returns the least bytes of a stage with this operator.
  [[nodiscard]] double least(int op) const;

 private:
  /// Use is a use of a parameter or a result that a stage may hold already.
  struct Use {
    int last = 0;  ///< the operator that made or used it last: a stage with it holds it
    double bytes = 0;
  };
  using Uses = std::vector<std::vector<Use>>;  // by operator
  /// Row is one operator. It is small, since append() is called for each probe of a search.
  struct Row {
    double kept = 0;
    double transient = 0;
    double input = 0;
    double parameters = 0;  ///< bytes of those that no operator before it uses
    int earliest = 0;       ///< a stage from here on or earlier holds all its other uses
  };

  void list_parameters();
  void list_results();
  void list_rows();
  /// Returns the bytes that a stage from `first` on must hold for the uses of one more operator.
  [[nodiscard]] static double fetched(const std::vector<Use>& uses, int first);

  const WorkGraph* graph_;
  std::vector<int> in_flight_;
  int fewest_in_flight_ = 1;
  std::vector<Row> rows_;
  Uses parameters_, results_;
  bool filling_is_exact_ = true;
};

}  // namespace stagecraft
