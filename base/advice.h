/// Advice at the end of an error's message: the calls that make weights good again which are
/// undefined or were lost with a worker.
///
///   rank 1 is lost: process 4711 was killed by signal 9; to go on: cluster.replace(Rank(1)), ...
///
/// The advice names calls of a program. Users of the command have no such calls: logs leave the
/// advice out, and the command replaces it by its own.
#pragma once

#include <string_view>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Begins the advice, which ends the message.
inline constexpr std::string_view kToGoOn = "; to go on: ";

/// Returns the error, and those that led to it, with `advice` in place of theirs; empty: with none.
[[nodiscard]] Error with_advice(const Error& error, std::string_view advice);

}  // namespace stagecraft
