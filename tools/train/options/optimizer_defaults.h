/// optimizer_defaults has the defaults of an optimizer's settings in `stagecraft train`. The help
/// shows them, and an optimizer is made with them.
#pragma once

#include <string_view>

namespace stagecraft::tools {

/// Returns the default of a setting other than the learning rate: that of the record, or for AdamW
/// the usual value for language models.
/// Requires: the optimizer of this name (optimizer_table.h) has the setting.
[[nodiscard]] double default_setting(std::string_view optimizer, std::string_view setting);

}  // namespace stagecraft::tools
