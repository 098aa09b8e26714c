/// verify checks that a stage program from any source can be bound and run without access to
/// anything that does not exist.
///
/// It is used for programs of other processes. Programs that partition makes keep all these rules.
/// SV-1: for a program that passes, no interpreter, executor or bucket reads outside of its lists,
///       calls an operator with another number or kind of operands than its schema has, or computes
///       sizes that overflow. Operators themselves check the tensors that they get.
/// SV-2: it calls only operators that check their arguments (allowed_operators.h), and operators of
///       the user's own program.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// Returns all faults of the stage, one sentence each, each with the stage's number; empty for a
/// sound stage. At most kMostFaults.
[[nodiscard]] std::vector<std::string> verify(const StageProgram& stage);

inline constexpr std::size_t kMostFaults = 16;

}  // namespace stagecraft
