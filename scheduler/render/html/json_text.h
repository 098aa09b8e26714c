/// json_text writes the JSON that pages embed: text, numbers and lists, without a '<' (H-1).
///
/// Private to render/. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft::drawing {

/// Returns the text in quotes.
[[nodiscard]] std::string json_text(std::string_view text);

/// Returns the number. Errors: ScheduleParameter for a number that is not finite.
[[nodiscard]] std::string json_number(double value);

/// Returns "[a,b,...]" with the result of `write` for each item.
template <class Items, class Write>
[[nodiscard]] std::string json_list(const Items& items, Write&& write) {
  std::string out = "[";
  for (const auto& item : items) {
    if (out.size() > 1) {
      out += ',';
    }
    out += write(item);
  }
  return out + ']';
}

}  // namespace stagecraft::drawing
