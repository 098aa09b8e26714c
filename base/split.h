/// split divides a text at its separators, as in "a,b" and "layers.3".
#pragma once

#include <string_view>
#include <vector>

namespace stagecraft {

/// Returns the parts, empty ones included: one more than there are separators. The parts are views
/// of `text`.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace stagecraft
