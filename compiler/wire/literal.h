/// literal writes and reads a literal operand of an operator: a c10::IValue of the kinds that
/// capture records.
///
/// It is an array of two: the kind and the content.
/// WL-1: tensors are not literals (they are values of the program), but the absence of a tensor is.
///       A device is not a literal either; StageDevice stands for it.
#pragma once

#include <ATen/core/ivalue.h>

#include "stagecraft/compiler/wire/reader.h"
#include "stagecraft/compiler/wire/writer.h"

namespace stagecraft::wire {

/// Returns whether there is a form for the literal.
[[nodiscard]] bool can_travel(const c10::IValue& literal);

/// Writes the literal. Requires: can_travel.
void put_literal(Writer& out, const c10::IValue& literal);

/// Reads a literal. Errors: WireFormat.
[[nodiscard]] c10::IValue get_literal(Reader& in);

}  // namespace stagecraft::wire
