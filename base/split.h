/// split: a text in its parts between separators, "a,b" and "layers.3".
#pragma once

#include <string_view>
#include <vector>

namespace stagecraft {

/// Returns one part more than there are separators, empty ones too; views of `text`.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace stagecraft
