/// verify: whether a stage program can be bound and run without a look at anything that is not
/// there, whoever made it.
///
/// Asked of programs that came from elsewhere: those that partition makes keep all of it.
/// SV-1: what is sound here makes no interpreter, executor or bucket index outside of its lists,
///       call an operator with another number or kind of operands than its schema has, or compute
///       sizes that overflow. What operators do with the tensors they get is theirs to check.
/// SV-2: it calls only operators that check it (allowed_operators.h), and those of the user's own
///       program.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

/// What is wrong with the stage, one sentence each, each with the stage's number; empty for a sound
/// one. At most kMostFaults.
[[nodiscard]] std::vector<std::string> verify(const StageProgram& stage);

inline constexpr std::size_t kMostFaults = 16;

}  // namespace stagecraft
