#include "stagecraft/compiler/module/spread.h"

#include <fmt/format.h>

namespace stagecraft::internal {

std::string to_string(const TakenNumbers& taken) {
  if (taken.as_list) {
    return "a list of tensors";
  }
  std::vector<std::size_t> numbers;
  for (std::size_t n = 0; n < taken.one_by_one.size(); ++n) {
    if (taken.one_by_one[n]) {
      numbers.push_back(n);
    }
  }
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string_view before = i == 0 ? "" : i + 1 == numbers.size() ? " or " : ", ";
    text += fmt::format("{}{}", before, numbers[i]);
  }
  return text + (text == "1" ? " tensor" : " tensors");
}

}  // namespace stagecraft::internal
