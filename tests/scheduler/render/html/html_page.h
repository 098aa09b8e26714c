/// Reads the data that a page of render_html() embeds, for tests.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stagecraft {

/// Returns the JSON between the tags of the page's data element, as a browser would find it.
inline nlohmann::json data_of(const std::string& page) {
  constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(kOpen) + kOpen.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

}  // namespace stagecraft
