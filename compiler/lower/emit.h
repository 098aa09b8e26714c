/// emit makes the instructions of a rank list from the nodes that its ranks issue.
///
/// A pass of lower. It adds what a graph of chunks leaves out: the driver's tensors, tensors that
/// are regrouped for another size of microbatches, sums of a microbatch's gradients into buckets,
/// and the end of each collective just before its first user. Slots and waits come later.
/// EM-2: a list whose ranks have several units of samples (LA-3) does each task once per unit.
#pragma once

#include <vector>

#include "stagecraft/compiler/lower/emit_input.h"
#include "stagecraft/compiler/lower/list_writer.h"

namespace stagecraft {

/// `nodes`: those of rank list `place`, in issue order.
[[nodiscard]] EmittedList emit(const EmitInput& input, int place, const std::vector<int>& nodes);

}  // namespace stagecraft
