/// How large the models beside the Llama are, known from their options before they are built.
///
/// In double: what does not fit into 64 bits is to be refused, not to be taken for something small.
#pragma once

#include <cstdint>

#include "stagecraft/examples/models/clip_options.h"
#include "stagecraft/examples/models/moe_options.h"
#include "stagecraft/examples/models/unet_options.h"
#include "stagecraft/examples/models/vit_options.h"

namespace stagecraft::examples {

/// Returns the bytes of all parameters.
[[nodiscard]] double weight_bytes(const VitOptions& model);
[[nodiscard]] double weight_bytes(const MoeOptions& model);
[[nodiscard]] double weight_bytes(const UnetOptions& model);
[[nodiscard]] double weight_bytes(const ClipOptions& model);

/// Returns what the forward of one microbatch of so many samples (sequences, images, pairs) keeps
/// for its backward, at the least: the operands of its matrix products and convolutions.
[[nodiscard]] double least_activation_bytes(const VitOptions& model, std::int64_t samples);
[[nodiscard]] double least_activation_bytes(const MoeOptions& model, std::int64_t samples);
[[nodiscard]] double least_activation_bytes(const UnetOptions& model, std::int64_t samples);
[[nodiscard]] double least_activation_bytes(const ClipOptions& model, std::int64_t samples);

}  // namespace stagecraft::examples
