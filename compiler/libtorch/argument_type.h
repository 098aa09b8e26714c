/// without_optional returns the type that an operand has when it is given for an argument.
#pragma once

#include <ATen/core/jit_type.h>

namespace stagecraft {

/// Returns the type of an argument, or of its value if the value may be absent. The result lives as
/// long as `type`.
[[nodiscard]] inline const c10::Type& without_optional(const c10::Type& type) {
  return type.kind() == c10::TypeKind::OptionalType
             ? *type.expectRef<c10::OptionalType>().getElementType()
             : type;
}

}  // namespace stagecraft
