/// cut_file reads and writes the text form of a cut: one line per stage.
///
///   op:0
///   layers.4    # a stage begins before the first operator that uses a parameter below this path
///   op:182      # or before an operator, by its number
///
///   {0-11 30-35}    # if stages are not a chain: the operators of each
///   {12-29 36}
///
/// A first line `@microbatch-size 4` gives the samples per microbatch for which the cut was made.
/// Text after a `#` is a comment, and empty lines are ignored. The first stage begins with the
/// first operator; its line is not used.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/program/cut_report.h"

namespace stagecraft {

/// Reads a cut. Errors: UsageFile, with `name` and the line, the expected text and the text found.
[[nodiscard]] Cut read_cut(std::string_view text, const std::string& name);

/// Returns the samples per microbatch that the text names, if it does.
/// Errors: as read_cut.
[[nodiscard]] std::optional<int> microbatch_size_in_cut(std::string_view text,
                                                        const std::string& name);

/// Returns the text of a finished cut, with the beginning of each stage as a comment. Reading this
/// text and cutting the same model gives the same stages.
[[nodiscard]] std::string write_cut(const CutReport& report);

}  // namespace stagecraft
