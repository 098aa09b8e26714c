/// layer_size counts the weights of single layers, from which each model knows its size before it
/// is built.
///
/// Sizes are in double: a size beyond 64 bits must stay large.
#pragma once

#include <cstdint>

namespace stagecraft::examples {

inline constexpr double kBytesOfFloat = sizeof(float);

[[nodiscard]] constexpr double as_double(std::int64_t number) {
  return static_cast<double>(number);
}

/// Counts the weights of a linear layer with biases.
[[nodiscard]] constexpr double linear_weights(double from, double to) {
  return (from + 1) * to;
}

/// Counts the weights of a convolution with biases and a square kernel.
[[nodiscard]] constexpr double convolution_weights(double from, double to, double side) {
  return (from * side * side + 1) * to;
}

}  // namespace stagecraft::examples
