/// A literal operand of an operator on the wire: a c10::IValue of the kinds that capture records.
///
/// An array of two: the kind, and what it holds.
/// WL-1: tensors are no literals (they are values of the program), but the absence of one is; nor
///       is a device, for which StageDevice stands.
#pragma once

#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/wire/reader.h"
#include "stagecraft/compiler/wire/writer.h"

namespace stagecraft::wire {

/// Whether there is a form for it.
[[nodiscard]] bool can_travel(const c10::IValue& literal);

/// Requires: can_travel.
void put_literal(Writer& out, const c10::IValue& literal);

/// Errors: WireFormat.
[[nodiscard]] c10::IValue get_literal(Reader& in);

}  // namespace stagecraft::wire
