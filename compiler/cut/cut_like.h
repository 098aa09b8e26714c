/// cut_like cuts a graph where another graph of the same model was cut.
///
/// Used where a model is captured anew: for another shape, or in evaluation mode.
/// LK-1: an operator that uses parameters or buffers is in a stage that has them, if one has;
///       inside a marker, where the model was cut at its markers, in that marker's stage.
/// LK-2: values flow only from a stage to those that come behind it in the model.
/// LK-3: whatever fits these and the memory that is written is found, if the stages are in a row;
///       of several solutions one that leaves operators where their counterparts are
///       (counterparts.h).
#pragma once

#include <cstdint>
#include <string>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {

/// WrittenMemory says how to treat operators that use memory which one of them writes
/// (memory_groups.h).
enum class WrittenMemory : std::uint8_t {
  InOneStage,  ///< they are in one stage
  IsCopied     ///< InOneStage only for memory that no stage makes; a stage that writes memory of
               ///< another stage must copy it first (copy_written.h)
};

/// What becomes of parameters and buffers that no stage of the model has.
enum class UnusedState : std::uint8_t {
  IsRefused,
  IsAnywhere  ///< whichever stage uses them (EV-3)
};

struct LikeCut {
  StageAssignment assignment;
  std::string misfit;  ///< why there is no assignment; empty if there is one
};

/// Returns a stage of the model for every operator.
[[nodiscard]] LikeCut cut_like(const Graph& graph,
                               const CompiledProgram& model,
                               UnusedState unused = UnusedState::IsRefused,
                               WrittenMemory written = WrittenMemory::InOneStage);

}  // namespace stagecraft
