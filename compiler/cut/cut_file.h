/// The text form of a cut: one line a stage.
///
///   # stagecraft cut
///   #0                    the first operator of each stage: its number,
///   layers.4              or the parameter path that it is the first to use
///   layers.8
///
///   {0-11 30-35}          or the operators of each stage, where stages are no chain
///   {12-29}
///
/// Words behind a number or a path on its line, and lines that begin with "# ", are comments.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/compiler/cut/cut.h"

namespace stagecraft {

/// Errors: UsageFile, with `name` and the line: what was expected, and what was found.
[[nodiscard]] Cut read_cut(std::string_view text, const std::string& name);

}  // namespace stagecraft
