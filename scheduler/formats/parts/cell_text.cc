#include "stagecraft/scheduler/formats/parts/cell_text.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/printable.h"

namespace stagecraft::formats {

Location Lines::location(std::size_t offset) const {
  if (offset < begin_) {
    line_ = 1;
    begin_ = searched_ = 0;
  }
  while (searched_ < offset) {
    const std::string_view rest = text_.substr(searched_, offset - searched_);
    const std::size_t newline = rest.find('\n');
    if (newline == std::string_view::npos) {
      searched_ = offset;
      break;
    }
    ++line_;
    begin_ = searched_ = searched_ + newline + 1;
  }
  return {line_, offset - begin_ + 1};
}

std::string located(Location at, std::string_view what) {
  return fmt::format("line {}, column {}: {}", at.line, at.column, what);
}

void fail(Location at, std::string_view what) {
  throw Error(Errc::ScheduleParse, located(at, what));
}

static_assert(kMaxStages == 65536 && kMaxCells == 16777216, "kNoRoom says so");

void require_size(std::string_view text) {
  if (text.size() > kMaxBytes) {
    throw Error(Errc::ScheduleParse,
                fmt::format("the text has {}, expected at most {}; split the schedule",
                            enough_bytes_text(static_cast<double>(text.size())),
                            bytes_text(static_cast<double>(kMaxBytes))));
  }
}

std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  const std::string_view shown = beginning_of(text, kLongest);
  return fmt::format("'{}{}'", printable(shown), shown.size() < text.size() ? "..." : "");
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::optional<int> leading_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::invalid_argument || text.front() == '-') {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    value = std::numeric_limits<int>::max();
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

std::optional<int> whole_number(std::string_view text) {
  const auto value = text.empty() ? std::nullopt : leading_number(text);
  return text.empty() ? value : std::nullopt;
}

std::optional<CellKind> kind_of(char c) {
  switch (c) {
    case 'F':
      return CellKind::Forward;
    case 'B':
      return CellKind::Backward;
    case 'I':
      return CellKind::BackwardInput;
    case 'W':
      return CellKind::BackwardWeight;
    case 'U':
      return CellKind::Update;
    default:
      return std::nullopt;
  }
}

void require_sane(const Task& task, std::string_view text, Location at) {
  if (task.stage.value >= kMaxStages || task.microbatch.value >= kMaxMicrobatches) {
    fail(at,
         fmt::format(
             "{} is too large: stages go up to {}, microbatches up to {}; correct the number",
             quoted(text),
             kMaxStages - 1,
             kMaxMicrobatches - 1));
  }
}

namespace {

constexpr std::string_view kCellHelp =
    "a cell is '.', <stage><kind><microbatch> with kind F, B, I or W, <stage>U, or members joined "
    "by '|', e.g. 0F3 or 0F7|7B3";

/// Returns whether the text has the form of a task. Its numbers may be too large.
bool has_form_of_task(std::string_view text) {
  (void)leading_number(text);
  const auto kind = text.empty() ? std::nullopt : kind_of(text.front());
  if (!kind) {
    return false;
  }
  text.remove_prefix(1);
  return *kind == CellKind::Update ? text.empty() : whole_number(text).has_value();
}

std::string advice(std::string_view text) {
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  if (upper != text && has_form_of_task(upper)) {
    return fmt::format("kinds are capital letters: {}", formats::quoted(upper));
  }
  constexpr std::size_t kSlips = 2;  // more letters than these are no slip of the finger
  for (std::size_t slip = 1; slip <= kSlips && slip < upper.size(); ++slip) {
    const std::string task = upper.substr(0, upper.size() - slip);
    if (has_form_of_task(task)) {
      return fmt::format("a cell ends with its microbatch: {}", formats::quoted(task));
    }
  }
  return std::string(kCellHelp);
}

Task parse_task(std::string_view text, std::size_t row, Location at) {
  std::string_view rest = text;
  Task task;
  const bool has_stage = !rest.empty() && rest.front() >= '0' && rest.front() <= '9';
  const auto stage = has_stage ? leading_number(rest) : std::optional<int>(static_cast<int>(row));
  const auto kind = rest.empty() ? std::nullopt : kind_of(rest.front());
  if (!stage || !kind) {
    fail(at, fmt::format("{} is not a cell; {}", quoted(text), advice(text)));
  }
  rest.remove_prefix(1);
  task.kind = *kind;
  task.stage = StageId(*stage);
  if (*kind == CellKind::Update) {
    if (!rest.empty()) {
      fail(at, fmt::format("{}: an update has no microbatch; write {}U", quoted(text), *stage));
    }
  } else {
    const auto microbatch = whole_number(rest);
    if (!microbatch) {
      fail(at, fmt::format("{} is not a cell; {}", quoted(text), advice(text)));
    }
    task.microbatch = Microbatch(*microbatch);
  }
  require_sane(task, text, at);
  return task;
}

}  // namespace

Cell parse_cell(std::string_view text, std::size_t row, Location at) {
  if (text == ".") {
    return Cell();
  }
  if (text.find('|') == std::string_view::npos) {
    return Cell(parse_task(text, row, at));
  }
  std::vector<Task> group;
  std::size_t begin = 0;
  while (true) {
    const std::size_t bar = text.find('|', begin);
    group.push_back(parse_task(text.substr(begin, bar - begin), row, {at.line, at.column + begin}));
    if (bar == std::string_view::npos) {
      return Cell(std::move(group));
    }
    begin = bar + 1;
  }
}

}  // namespace stagecraft::formats
