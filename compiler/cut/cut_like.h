/// cut_like cuts a graph where another graph of the same model was cut.
///
/// It is used when a model is captured again: for another shape, or in evaluation mode.
/// LK-1: an operator that uses parameters or buffers is in a stage that has them, if there is one.
///       If the model was cut at its markers, an operator inside a marker is in that marker's
///       stage.
/// LK-2: values flow only from a stage to the stages after it in the model.
/// LK-3: if the stages form a row, an assignment is found whenever one keeps LK-1 and LK-2 and the
///       rules for written memory. It leaves operators in the stages of their counterparts
///       (counterparts.h) where it can.
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

/// UnusedTensors says how to treat parameters and buffers that no stage of the model has.
enum class UnusedTensors : std::uint8_t {
  IsRefused,
  IsAnywhere  ///< any stage may use them (EV-3)
};

struct LikeCut {
  StageAssignment assignment;
  std::string misfit;  ///< the reason if there is no assignment; else empty
};

/// Returns a stage of the model for every operator.
[[nodiscard]] LikeCut cut_like(const Graph& graph,
                               const CompiledProgram& model,
                               UnusedTensors unused = UnusedTensors::IsRefused,
                               WrittenMemory written = WrittenMemory::InOneStage);

}  // namespace stagecraft
