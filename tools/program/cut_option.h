/// cut_option reads --cut, and writes cuts for people and programs. `import` and `train` share it.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/program/cut_report.h"

namespace stagecraft::tools {

/// Reads "layers.4,op:12" or "@FILE"; none if the option is not given.
/// Errors: UsageArgument for a place without a name; UsageFile for a file that cannot be read, and
///         those of read_cut.
[[nodiscard]] std::optional<Cut> cut_option(const std::optional<std::string>& words);

/// Returns the samples of a microbatch, if the file of "@FILE" names them.
/// Errors: as cut_option.
[[nodiscard]] std::optional<int> microbatch_size_of_cut(const std::optional<std::string>& words);

/// Returns the number of stages of a cut; none if the model's markers decide it.
[[nodiscard]] std::optional<int> stages_of(const Cut& cut);

/// Returns the beginning and the cost of each stage: an array for programs.
[[nodiscard]] nlohmann::ordered_json cut_json(const CutReport& cut);

}  // namespace stagecraft::tools
