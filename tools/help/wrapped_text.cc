#include "stagecraft/tools/help/wrapped_text.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

constexpr std::size_t kNarrowest = 20;

/// Returns the words of a line in lines of at most `width` columns, each but the first indented.
std::string wrapped_line(std::string_view text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t used = 0;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    if (used > 0 && used + 1 + word.size() > width) {
      lines += '\n' + std::string(indent, ' ');
      used = 0;
    }
    lines += (used > 0 ? " " : "") + word;
    used += (used > 0 ? 1 : 0) + word.size();
  }
  return lines;
}

}  // namespace

std::string wrapped_text(std::string_view text, std::size_t width) {
  std::string all;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const bool is_drawn = line.starts_with(' ');
    all += (is_drawn ? line : wrapped_line(line, width, 0)) + '\n';
  }
  return all;
}

std::string wrapped_entry(std::string_view label,
                          std::string_view text,
                          std::size_t column,
                          std::size_t width) {
  const std::string begin = fmt::format("  {}", label);
  const std::size_t rest = std::max(width, column + kNarrowest) - column;
  return (begin.size() < column ? fmt::format("{:<{}}", begin, column)
                                : fmt::format("{}\n{:{}}", begin, "", column)) +
         wrapped_line(text, rest, column) + '\n';
}

}  // namespace stagecraft::tools
