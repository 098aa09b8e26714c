#include "stagecraft/tools/schedule/input/strategy_input.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/split.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/scheduler/strategy/strategy_file.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {
namespace {

/// Returns whether one of the first rows of the text begins with a cell, as files of schedules do.
bool has_cells(std::string_view text) {
  constexpr std::size_t kRows = 1000;  // a row that is no cell costs an exception
  std::vector<std::string_view> lines = split(text, '\n');
  lines.resize(std::min(lines.size(), kRows));
  for (const std::string_view line : lines) {
    const std::string_view row = formats::trim(line.substr(0, line.find('#')));
    try {
      (void)formats::parse_cell(row.substr(0, row.find_first_of(" \t")), 0, {});
      return true;
    } catch (const Error&) {
      continue;
    }
  }
  return false;
}

/// Errors: ScheduleParse for a file that holds something else. Its lines are no wrong directives,
/// so their faults would mislead.
void check_kind(std::string_view text, const std::string& path) {
  if (looks_like_strategy_file(text)) {
    return;
  }
  const auto refuse = [&](const std::string& what) {
    throw Error(Errc::ScheduleParse, fmt::format("{} {}", source_name(path), what));
  };
  if (text.find('\0') != std::string_view::npos) {
    refuse("is a binary file, expected a strategy; docs/strategies.md describes its lines");
  }
  // The first format reads any text, so it says nothing about what the file is.
  const ScheduleFormat& format = detect_format(text, path);
  if (&format != &schedule_formats().front() || has_cells(text)) {
    refuse(
        fmt::format("looks like a schedule (format {}), expected a strategy; train --schedule and "
                    "stagecraft dag show read schedules",
                    format.name));
  }
}

}  // namespace

Strategy read_strategy(const std::string& path, const std::string& what, Console& console) {
  return strategy_in(read_source(path, what, console), path);
}

Strategy strategy_in(const std::string& text, const std::string& path) {
  check_kind(text, path);
  try {
    return parse_strategy_file(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", source_name(path), error.message()));
  }
}

int ranks_of(const Strategy& strategy) {
  std::set<Rank> ranks;
  for (const Directive& directive : strategy.directives()) {
    if (const auto* const place = std::get_if<PlaceDirective>(&directive)) {
      ranks.insert(place->ranks.begin(), place->ranks.end());
    }
  }
  return static_cast<int>(ranks.size());
}

}  // namespace stagecraft::tools
