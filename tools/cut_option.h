/// The words of --cut, and what is told and written of a cut. `import` and `train` share
/// them.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/cut/cut_report.h"

namespace stagecraft::tools {

/// "layers.4,op:12" or "@FILE"; none where nothing is given.
/// Errors: UsageArgument for a place without a name; UsageFile for a file that cannot be read, and
///         those of read_cut.
[[nodiscard]] std::optional<Cut> cut_option(const std::optional<std::string>& words);

/// The samples of a microbatch that the file of "@FILE" names, if it does.
/// Errors: as cut_option.
[[nodiscard]] std::optional<int> microbatch_size_of_cut(const std::optional<std::string>& words);

/// How many stages it makes; none where the model's markers say it.
[[nodiscard]] std::optional<int> stages_of(const Cut& cut);

/// Where each stage begins and what it costs: an array for programs.
[[nodiscard]] nlohmann::ordered_json cut_json(const CutReport& cut);

}  // namespace stagecraft::tools
