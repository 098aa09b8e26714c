/// ChunkBorders lists the borders of a stage's chunks: so that the gradients of one chunk are
/// summed over the copies of the stage while earlier chunks still compute theirs, so that ranks
/// divide the weights of a region, and so that an evaluation gathers weights chunk by chunk.
///
/// in_chunks() (shapes/in_chunks.h) chooses and applies them, and evaluation_in_chunks()
/// (evaluation_chunks.h) for an evaluation.
/// CKB-1: borders name parameters and regions, not operators, so that they fit the stage in every
///        shape.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/compiler/stage/stage_program.h"
#include "stagecraft/scheduler/strategy/filter.h"

namespace stagecraft {

struct ChunkBorders {
  /// Those at whose first reader a chunk begins, in the order of the readers.
  std::vector<std::string> parameters;
  /// The regions that are chunks of their own, whose weights ranks divide.
  std::vector<Filter::Tag> divided;

  [[nodiscard]] bool empty() const { return parameters.empty() && divided.empty(); }
};

/// Returns the borders whose chunks have at most so many bytes of trained parameters each. A chunk
/// has more if one operator reads more, also through a view that another makes for it (a bias and a
/// transposed weight), or if chunks cannot share what crosses a border (cut_into_chunks).
/// `together`: all readers of a parameter stay in one chunk, which then may have more, too. No
/// border is inside a divided region. No parameters for a stage of several chunks, whose borders
/// are given, and for one that is recomputed as a whole.
[[nodiscard]] ChunkBorders borders_for(const StageProgram& stage,
                                       std::int64_t most_bytes,
                                       bool together = false,
                                       std::vector<Filter::Tag> divided = {});

/// Returns the borders that begin a chunk where the stage first reads a parameter of each of these
/// sets, as far as chunks can share what crosses there. `sets`: names. None for a stage of several
/// chunks, whose borders are given.
[[nodiscard]] ChunkBorders borders_between(const StageProgram& stage,
                                           const std::vector<std::set<std::string>>& sets);

/// Cuts the stage. A recomputed chunk with a region in it becomes several, which are recomputed one
/// by one. A region remains whole, and is recomputed if a part of it was.
/// Errors: CompilePartition for a stage that does not have such borders.
void cut_at(StageProgram& stage, const ChunkBorders& borders);

}  // namespace stagecraft
