/// replay_check checks that a replay of the captured graph computes the same as the module. compile
/// uses it, once.
///
/// The dispatcher does not see everything that a module does: reads of values (data_ptr, printing),
/// state outside of registered buffers, gradients that are changed unnoticed. The graph captured on
/// one microbatch then gives another result on the next.
#pragma once

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/module/workload.h"

namespace stagecraft {

/// Replays the whole graph on a microbatch of other values than it was captured with, and compares
/// it with the module run eagerly, gradients included, bit by bit. Then runs the module's forward
/// twice more, on these values and on the given ones: the results must not depend on the number of
/// calls. The values are the given ones in another order. If the module or its loss throws for that
/// order (offsets, lengths, sorted indices), they are in their own order.
/// Errors: CompileCapture, naming the first output or parameter that differs, or a parameter whose
///         gradient no optimizer takes.
/// Cost: five forwards and two backwards of one microbatch; one forward more if the other order is
///       not accepted.
void check_against_eager(const Workload& workload,
                         const Graph& graph,
                         const Tensors& inputs,
                         const Tensors& labels);

}  // namespace stagecraft
