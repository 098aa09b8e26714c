/// model_size computes how large the models other than the Llama are, from their options, before
/// they are built.
///
/// It computes in double, so that a size beyond 64 bits is refused and not mistaken for a small
/// one.
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

/// Returns a lower bound of the bytes that the forward of one microbatch of so many samples
/// (sequences, images, pairs) keeps for its backward: the operands of its matrix products and
/// convolutions.
[[nodiscard]] double least_activation_bytes(const VitOptions& model, std::int64_t samples);
[[nodiscard]] double least_activation_bytes(const MoeOptions& model, std::int64_t samples);
[[nodiscard]] double least_activation_bytes(const UnetOptions& model, std::int64_t samples);
[[nodiscard]] double least_activation_bytes(const ClipOptions& model, std::int64_t samples);

}  // namespace stagecraft::examples
