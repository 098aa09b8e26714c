#include "stagecraft/scheduler/strategy/filter.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace stagecraft {

std::optional<int> Filter::number_of(std::string_view tag) const {
  const auto found = std::ranges::find(tags, tag, &Tag::name);
  return found == tags.end() ? std::nullopt : found->number;
}

std::string_view to_string(Pass pass) {
  constexpr std::array<std::string_view, 4> kNames{"F", "B", "BI", "BW"};
  return kNames.at(static_cast<std::size_t>(pass));
}

std::string to_string(const Filter& filter) {
  std::string text = "{";
  for (const Filter::Tag& tag : filter.tags) {
    text += fmt::format("{}{}:{}",
                        text.size() > 1 ? "," : "",
                        tag.name,
                        tag.number ? std::to_string(*tag.number) : "*");
  }
  if (filter.pass) {
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", kPassTag, to_string(*filter.pass));
  }
  return text + "}";
}

}  // namespace stagecraft
