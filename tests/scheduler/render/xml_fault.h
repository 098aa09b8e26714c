/// xml_fault judges drawings as XML, for tests.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace stagecraft {

/// Returns the first fault of `text` as XML, for the part of XML that drawings use: elements nest,
/// attributes are quoted, text holds no bare '<' or '&'.
inline std::optional<std::string> xml_fault(const std::string& text) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '&') {
      const std::string rest = text.substr(at, 5);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;")) {
        return "bare & at " + std::to_string(at);
      }
    }
    if (text[at] != '<') {
      continue;
    }
    bool quoted = false;
    std::size_t end = at + 1;
    while (end < text.size() && (quoted || text[end] != '>')) {
      quoted = quoted != (text[end] == '"');
      if (text[end] == '<') {
        return "< within an element at " + std::to_string(end);
      }
      ++end;
    }
    const std::string tag = text.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find(' '));
    if (tag.starts_with('/')) {
      if (open.empty() || "/" + open.back() != tag) {
        return "<" + tag + "> closes nothing";
      }
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty() ? std::nullopt : std::optional("<" + open.back() + "> stays open");
}

}  // namespace stagecraft
