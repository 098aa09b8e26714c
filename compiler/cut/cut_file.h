/// The text form of a cut: one line a stage.
///
///   op:0
///   layers.4    # a stage begins before the first operator that uses a parameter below this path
///   op:182      # or before an operator, by its number
///
///   {0-11 30-35}    # where stages are no chain: the operators of each
///   {12-29 36}
///
/// A first line `@microbatch-size 4` says for microbatches of how many samples the cut was made.
/// What follows a `#` is a comment, and empty lines count for nothing. The first stage begins with
/// the first operator, however it is called.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/cut/cut_report.h"

namespace stagecraft {

/// Errors: UsageFile, with `name` and the line: what was expected, and what was found.
[[nodiscard]] Cut read_cut(std::string_view text, const std::string& name);

/// Returns the samples of the microbatches that the text names, if it does.
/// Errors: as read_cut.
[[nodiscard]] std::optional<int> microbatch_size_in_cut(std::string_view text,
                                                        const std::string& name);

/// Returns the text of a cut that was made, with where each stage begins as a comment: reading it
/// and cutting the same model gives the same stages.
[[nodiscard]] std::string write_cut(const CutReport& report);

}  // namespace stagecraft
