#include "stagecraft/tools/common/table.h"

#include <algorithm>

#include <fmt/format.h>

namespace stagecraft::tools {

std::string table_text(const std::vector<std::string>& head,
                       const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const std::string& title : head) {
    width.push_back(title.size());
  }
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      width[c] = std::max(width[c], row[c].size());
    }
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    text += fmt::format("{:<{}}", cells.front(), width.front());
    for (std::size_t c = 1; c < cells.size(); ++c) {
      text += fmt::format("  {:>{}}", cells[c], width[c]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  };
  line(head);
  for (const auto& row : rows) {
    line(row);
  }
  return text;
}

}  // namespace stagecraft::tools
