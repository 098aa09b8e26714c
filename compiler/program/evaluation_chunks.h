/// evaluation_chunks cuts the stages of an evaluation where it begins to use weights of another
/// bucket of which ranks hold parts (P-12). So ranks gather its weights chunk by chunk, as they do
/// in training.
///
/// A trainer cuts an evaluation before it lowers it, and cuts all shapes alike (CKB-1). Lowering
/// and the ranks find the users of a bucket.
#pragma once

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/chunk_borders.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Returns the evaluation as one of `trained`, the program of these tables, in such chunks. It has
/// the one shape of its first capture.
[[nodiscard]] Program evaluation_in_chunks(const Program& evaluation,
                                           const Program& trained,
                                           const PlanTables& tables);

/// Cuts a stage of another shape of an evaluation where its first one is cut. `borders`: those that
/// evaluation_in_chunks chose for the stage.
/// Errors: CompilePartition for one that uses its weights in another order.
void cut_as_first(StageProgram& stage, const ChunkBorders& borders);

/// Returns the chunks of an evaluation's stage from the first to the last that reads a parameter of
/// a bucket; none if there is no reader. `bucket`: its chunks of `trained`, the stage that trains.
[[nodiscard]] ChunkRange users_of(const StageProgram& evaluation,
                                  const StageProgram& trained,
                                  const ChunkRange& bucket);

}  // namespace stagecraft
