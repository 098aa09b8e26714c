/// contents_of lists the tensors of a trainer's state as a checkpoint has them, and says which
/// ranks have them, whole or in shares (StateShare).
///
/// Checkpoints have whole tensors, so a run with shards goes on as one without, and vice versa.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// StatePart is a part of a tensor that a rank has.
struct StatePart {
  Rank rank;
  std::int32_t position = 0;  ///< in the rank's listing
  std::int64_t begin = 0;     ///< its first element in the whole tensor
};

struct StateEntry : TensorEntry {
  std::vector<StatePart> parts;  ///< one if a rank has it whole; none: no stage has it
};

/// Returns each tensor once: first those that no stage has, then by rank. `listings`: of all ranks,
/// by rank. Errors: Internal if the ranks do not have all elements of a tensor.
[[nodiscard]] std::vector<StateEntry> contents_of(const std::vector<NamedTensor>& unused,
                                                  const Graph& graph,
                                                  const std::vector<StateListing>& listings);

/// Returns the entry's tensor from its parts, which are in the same order. A single part that is
/// the whole is not copied.
[[nodiscard]] at::Tensor joined(const StateEntry& entry, const std::vector<at::Tensor>& parts);

}  // namespace stagecraft
