/// state_listing fills the listing of a state with its tensors.
///
/// A stage worker lists what it sends, the trainer what it was sent.
#pragma once

#include <vector>

#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft {

/// Appends name, shape and type of each tensor.
void add_tensors(StateListing& listing, const std::vector<NamedTensor>& state);

}  // namespace stagecraft
