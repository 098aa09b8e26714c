/// ChunkShares tells which part of its stage's time each chunk takes.
///
/// If the costs list the operators of a stage, and the DAG knows those of its chunks by the same
/// names, a chunk takes the part of its operators. Otherwise the chunks of a stage take equal
/// parts.
/// A value that views source and costs only when it is made.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/dag/dag_source.h"
#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

class ChunkShares {
 public:
  ChunkShares(const DagSource& source, const Costs& costs);

  /// Returns the chunk's part of a task's time; the parts of a stage add up to 1. `kind`: a
  /// forward, a backward or one of its halves.
  [[nodiscard]] double of(StageId stage, int chunk, CellKind kind) const;

 private:
  struct Times {
    double forward = 0, input = 0, weight = 0;

    [[nodiscard]] double of(CellKind kind) const;
  };

  std::vector<std::vector<Times>> stages_;  // by stage, chunk; all 0 if they are not known
};

}  // namespace stagecraft
