/// Ties: parameters that several stages use (SP-2). Every such stage has a copy and a part of the
/// gradient; before the vote the parts become one gradient, and so the copies keep the same bits.
///
/// compile asks which parameters these are, the training DAG and the reference which of them have
/// parts to add.
#pragma once

#include <vector>

#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/partition.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Keeps SP-2, once `trained` says where a gradient arrives.
void train_together(Partition& partition);

/// The parameters of several stages, in the model's order. All are summed where they train, so V33
/// has nothing to say of them.
[[nodiscard]] std::vector<TiedParameter> tied_parameters(const Partition& partition);

/// Those that train, for each replica: one tie for all that the same stages use with one dtype.
/// Their ranks are left empty.
[[nodiscard]] std::vector<Tie> ties_of(const CompiledProgram& program);

}  // namespace stagecraft
