/// Partition: cuts a captured graph at its stage markers into stage programs and the DAG between
/// them.
///
/// An operator outside all markers, those of the loss among them, belongs to the stage of the
/// operand that is furthest downstream in the stage DAG (of equally deep ones the last entered),
/// or, with none, to that of the reader that is least far downstream (of equally deep ones the
/// first entered), so that values only flow downstream; a graph without markers is one stage.
/// Stages are numbered in the order in which the module enters them.
#pragma once

#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

struct Partition {
  std::vector<StageProgram> stages;
  std::vector<StageId> order;  ///< a topological order of the stages; ties by number
  std::vector<int> stage_of;   ///< of every node of the graph, by its number
};

/// Errors: CompilePartition for a parameter used in two stages (V33) and an in-place operator on a
///         value that another stage reads; each names operator and markers.
[[nodiscard]] Partition partition(const Graph& graph);

/// The whole graph as one program: what the cut must not change.
[[nodiscard]] StageProgram whole_program(const Graph& graph);

}  // namespace stagecraft
