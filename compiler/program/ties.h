/// Ties are parameters that several stages use (SP-2). Every such stage has a copy and a part of
/// the gradient. Before the vote the parts become one gradient, so the copies keep the same bits.
///
/// compile finds these parameters. The training DAG and the reference find which of them have parts
/// to add.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Keeps SP-2. Requires: `trained` is set for the parameters that a gradient reaches.
void train_together(Partition& partition);

/// Returns the parameters of several stages, in the model's order. All of them are summed if they
/// train, so V33 never rejects them.
[[nodiscard]] std::vector<TiedParameter> tied_parameters(const Partition& partition);

/// Tie is a set of parameters that the same stages use. Each stage has a part of their gradients.
/// Before the vote the parts are added in the order of `stages`.
struct Tie {
  std::vector<StageId> stages;          ///< in the model's order
  std::vector<std::string> parameters;  ///< likewise, of one dtype
};

/// Returns the ties that train: one for all parameters that the same stages use with one dtype.
[[nodiscard]] std::vector<Tie> ties_of(const CompiledProgram& program);

}  // namespace stagecraft
