/// is_half_type tells the types of numbers in 16 bits, in which parameters may be.
#pragma once

#include <c10/core/ScalarType.h>

namespace stagecraft {

/// Returns true for bfloat16 and float16.
[[nodiscard]] constexpr bool is_half_type(c10::ScalarType type) {
  return type == c10::ScalarType::BFloat16 || type == c10::ScalarType::Half;
}

}  // namespace stagecraft
