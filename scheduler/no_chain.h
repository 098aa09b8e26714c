/// find_no_chain: cells of another stage graph that were taken for one chain.
///
/// PyTorch's CSV does not name its stage graph. Read as a chain, branches that run beside each
/// other break V20 to V22 in every microbatch, though nothing is wrong with them. Pure; any thread.
#pragma once

#include <optional>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft {

/// Returns the one violation (V32) that stands for all where the array is valid once the edges of
/// the chain that most of its microbatches do not keep are left out; nothing where it is a chain,
/// or where something else is wrong too. Cost: one validation, where an edge is not kept.
[[nodiscard]] std::optional<Violation> find_no_chain(const Schedule& array);

}  // namespace stagecraft
