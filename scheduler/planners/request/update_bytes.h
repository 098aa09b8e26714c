/// UpdateBytes counts the bytes that rows hold while they sum gradients at the end of a step, in
/// addition to the fixed bytes of their stages. They sum over the copies of a stage, and over the
/// stages that share a parameter.
///
///     a rank holds    its own parts of sums    the parts of the others
///                     `held`                   `received`
///
/// Counted as if all activations had been freed: sums of a row with several stages begin earlier,
/// while others still hold theirs. The update that follows works in place. All sums over
/// copies run at the same time. The sums over ties follow; they gather one tie after the other. The
/// judge and searches of cuts use it. A value.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/planners/request/work_graph.h"

namespace stagecraft {

class UpdateBytes {
 public:
  struct Bytes {
    double held = 0;
    double received = 0;  ///< from other ranks, from the time they send it

    [[nodiscard]] double all() const { return held + received; }
  };

  explicit UpdateBytes(int rows) : rows_(static_cast<std::size_t>(rows)) {}

  /// Adds the sum of a stage's gradients over its copies. `rows`: those of the copies; `devices`:
  /// the number with a copy; `gradients`: bytes of one copy.
  void add_copies(std::span<const int> rows, int devices, double gradients);

  /// Adds the sum over stages that share parameters. `rows`: those of the stages; `gradients`:
  /// bytes of all parameters that exactly these stages share.
  void add_tie(std::span<const int> rows, double gradients);

  /// Adds the sums over all parameters that stages of `stages` share. `graph`: has their bytes;
  /// `rows`: by stage; `shards`: by stage, how many its copies make of its gradients.
  void add_ties(const WorkGraph& graph,
                const StageGraph& stages,
                std::span<const int> rows,
                std::span<const int> shards);

  [[nodiscard]] Bytes of(int row) const;

 private:
  struct Row {
    Bytes copies, ties;
    double gathered = 0;  // of the largest tie
  };

  std::vector<Row> rows_;
};

}  // namespace stagecraft
