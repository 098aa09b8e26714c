/// table_text writes a table for people: the first column left-aligned, the others right-aligned,
/// each as wide as its widest cell.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::tools {

/// Returns one line per row, the head first. Requires: as many cells in each row as in the head.
[[nodiscard]] std::string table_text(const std::vector<std::string>& head,
                                     const std::vector<std::vector<std::string>>& rows);

}  // namespace stagecraft::tools
