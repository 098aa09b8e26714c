/// find_wrong_graph detects that a schedule of another stage graph was read as one chain.
///
/// PyTorch's CSV does not name its stage graph. If it is read as a chain, parallel branches break
/// V20 to V22 in every microbatch although they are right. Pure; any thread.
#pragma once

#include <optional>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace stagecraft {

/// Leaves out the edges of the chain that most microbatches do not keep. Returns one violation
/// (V32) that stands for all if the array is then valid. Returns nothing if the array is a chain or
/// has another fault too.
/// Cost: one validation if an edge is not kept.
[[nodiscard]] std::optional<Violation> find_wrong_graph(const Schedule& array);

}  // namespace stagecraft
