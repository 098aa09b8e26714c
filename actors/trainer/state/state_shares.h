/// state_shares makes whole tensors of the shares that ranks have of them (StateShare).
///
/// Checkpoints have whole tensors, so a run with shards goes on as one without, and vice versa.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// Returns the sizes of the whole tensor of which a share belongs to this name: those of a
/// parameter. `name`: of the parameter, or of a state tensor of it. Errors: Internal for another.
[[nodiscard]] at::IntArrayRef whole_sizes(const Graph& graph, const std::string& name);

/// Returns the tensors, with one whole tensor in the place of the first share of each. Errors:
/// Internal if shares are missing.
[[nodiscard]] std::vector<NamedTensor> join_shares(const Graph& graph,
                                                   const std::vector<NamedTensor>& state);

}  // namespace stagecraft
