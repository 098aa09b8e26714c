/// weights_hash computes one number for all weights of a model. Two numbers are equal if and only
/// if every parameter is equal bit by bit.
#pragma once

#include <string>

#include "stagecraft/tools/train/verify/named_state.h"

namespace stagecraft::tools {

/// Returns the SHA-256, in hexadecimal, over the raw bytes of all parameters in the order given
/// (the module's). Names and shapes do not enter.
[[nodiscard]] std::string weights_sha256(const NamedTensors& parameters);

}  // namespace stagecraft::tools
