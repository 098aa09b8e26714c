/// Partition: cuts a captured graph at its stage markers into stage programs and the DAG between
/// them.
///
/// An operator outside all markers, those of the loss among them, belongs to the stage of the
/// operand that is furthest downstream in the stage DAG (of equally deep ones the last entered),
/// or, with none, to that of the reader that is least far downstream (of equally deep ones the
/// first entered), so that values only flow downstream; a graph without markers is one stage.
/// Stages are numbered in the order in which the module enters them. A parameter that several use
/// is in each of them (SP-2).
#pragma once

#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

struct Partition {
  std::vector<StageProgram> stages;
  std::vector<StageId> order;  ///< a topological order of the stages; ties by number
};

/// Errors: CompilePartition for an in-place operator on a value that another stage reads, and for a
///         parameter with a hook that two stages use; each names operators and markers.
[[nodiscard]] Partition partition(const Graph& graph);

/// The whole graph as one program: what the cut must not change.
[[nodiscard]] StageProgram whole_program(const Graph& graph);

}  // namespace stagecraft
