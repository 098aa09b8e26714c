/// How large a Llama is, known from its options before it is built.
///
/// In double: what does not fit into 64 bits is to be refused, not to be taken for something small.
#pragma once

#include <cstdint>

#include "stagecraft/examples/models/llama_options.h"

namespace stagecraft::tools {

/// Bytes that the modules and captured operators of one layer take. Measured on Llamas; it hardly
/// depends on the sizes.
inline constexpr double kBytesToDescribeALayer = 320.0 * 1024;

/// Returns the bytes of all parameters.
[[nodiscard]] double weight_bytes(const examples::LlamaOptions& model);

/// Returns what the forward of one microbatch of so many sequences keeps for its backward, at the
/// least: the operands of its matrix products, its attention and its activation functions.
[[nodiscard]] double least_activation_bytes(const examples::LlamaOptions& model,
                                            std::int64_t sequences);

/// Returns about what the modules and the captured operators take, whatever their tensors.
[[nodiscard]] double description_bytes(const examples::LlamaOptions& model);

}  // namespace stagecraft::tools
