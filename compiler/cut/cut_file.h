/// cut_file reads and writes the text form of a cut: one line per stage.
///
///   op:0
///   layers.4    # a stage begins before the first operator that uses a parameter below this path
///   op:182      # or before an operator, by its number
///
///   {0-11 30-35}    # if stages are not a chain: the operators of each
///   {12-29 36}
///
/// Lines before the stages say for what the cut was made, in any order, each at most once:
///
///   @microbatch-size 4                  the samples per microbatch
///   @operators 133 0c5d3f20a1b4e877     the model's operators (operator_list_hash.h)
///
/// With the second line, models of other operators refuse the cut: the numbers mean other operators
/// there, and a cut by them could still be a valid one.
/// Text after a `#` is a comment, and empty lines are ignored. The first stage begins with the
/// first operator; its line is not used.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/program/cut_report.h"

namespace stagecraft {

/// Reads a cut. `name` is that of its file, for messages.
/// Errors: UsageFile, with `name` and the line, the expected text and the text found.
[[nodiscard]] Cut read_cut(std::string_view text, const std::string& name);

/// Returns the samples per microbatch that the text names, if it does.
/// Errors: as read_cut.
[[nodiscard]] std::optional<int> microbatch_size_in_cut(std::string_view text,
                                                        const std::string& name);

/// Returns the text of a finished cut, with the operators of the model, and the beginning of each
/// stage as a comment. Reading this text and cutting the same model gives the same stages.
[[nodiscard]] std::string write_cut(const CutReport& report);

}  // namespace stagecraft
