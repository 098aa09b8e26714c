/// Computes the size of a Llama from its options, before it is built.
///
/// In double: a size beyond 64 bits must be refused, not taken for a small one.
#pragma once

#include <cstdint>

#include "stagecraft/examples/models/llama_options.h"

namespace stagecraft::tools {

/// Bytes that the modules and captured operators of one layer take. Measured on Llamas; it hardly
/// depends on the sizes.
inline constexpr double kBytesToDescribeALayer = 320.0 * 1024;

/// Returns the bytes of all parameters.
[[nodiscard]] double weight_bytes(const examples::LlamaOptions& model);

/// Returns a lower bound of what the forward of one microbatch of this many sequences keeps for its
/// backward: the operands of its matrix products, its attention and its activation functions.
[[nodiscard]] double least_activation_bytes(const examples::LlamaOptions& model,
                                            std::int64_t sequences);

/// Returns an estimate of the memory of the modules and the captured operators, without tensors.
[[nodiscard]] double description_bytes(const examples::LlamaOptions& model);

}  // namespace stagecraft::tools
