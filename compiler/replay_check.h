/// replay_check: whether a replay of the captured graph does what the module does. Used by compile,
/// once.
///
/// Some things that a module does no dispatcher sees: reads of values (data_ptr, printing), state
/// outside of registered buffers, gradients that are changed where nobody looks. What was captured
/// on one microbatch then differs on another.
#pragma once

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/workload.h"

namespace stagecraft {

/// Replays the whole graph on a microbatch of other values than it was captured with, and compares
/// it with the module run eagerly, gradients included, bit by bit; then runs the module twice more,
/// forward, on these values and on those given: what it returns must not depend on how often it was
/// called. The values are those given, in
/// another order; or, where the module or its loss throws at that (offsets, lengths, sorted
/// indices), in their own.
/// Errors: CompileCapture, naming the first output or parameter that differs, or a parameter whose
///         gradient no optimizer takes.
/// Cost: five forwards and two backwards of one microbatch; one forward more where the other order
/// is not taken.
void check_against_eager(const Workload& workload,
                         const Graph& graph,
                         const Tensors& inputs,
                         const Tensors& labels);

}  // namespace stagecraft
