/// Probe: what a cut program shows only when it runs. Used by compile, once.
#pragma once

#include <vector>

#include "stagecraft/compiler/capture.h"
#include "stagecraft/compiler/partition.h"

namespace stagecraft {

/// Replays the whole graph on a microbatch of other values than it was captured with, and compares
/// it with the module run eagerly, gradients included: reads that no dispatcher sees (data_ptr,
/// printing) show here, and gradients that are changed where nobody looks. The values are those
/// given, in another order; or, where the module or its loss throws at that (offsets, lengths,
/// sorted indices), in their own.
/// Errors: CompileCapture, naming the first output or parameter that differs, or a parameter whose
///         gradient no optimizer takes.
/// Cost: two forwards and two backwards of one microbatch; one forward more where the other order
/// is not taken.
void check_against_eager(const Workload& workload,
                         const Graph& graph,
                         const Tensors& inputs,
                         const Tensors& labels);

/// Runs the stages one after the other on a microbatch and fills in what partition could not know:
/// which values owe a gradient, which parameters get one, and the bytes each stage keeps and needs.
void measure_stages(const Graph& graph,
                    Partition& partition,
                    const Tensors& inputs,
                    const Tensors& labels);

}  // namespace stagecraft
