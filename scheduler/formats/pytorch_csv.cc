#include "stagecraft/scheduler/formats/pytorch_csv.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"
#include "stagecraft/scheduler/formats/parts/rows.h"

namespace stagecraft {
namespace {

using formats::fail;
using formats::Location;
using formats::quoted;

constexpr std::string_view kOverlap = "OVERLAP_F_B";
constexpr std::string_view kHelp =
    "an action is <stage><F|B|I|W><microbatch>, <stage><SEND_F|RECV_F|SEND_B|RECV_B><microbatch>, "
    "<stage><UNSHARD|RESHARD|REDUCE_GRAD>, or (a;b)OVERLAP_F_B";

/// Returns the probable meaning of the text, or the legal words.
std::string advice(std::string_view text) {
  const std::size_t letters = text.find_first_not_of("0123456789");
  const std::string_view word = letters == std::string_view::npos ? "" : text.substr(letters);
  if (word.starts_with("BW")) {
    return "some writers mean the weight half by BW and others the whole backward; write W or B";
  }
  if (word.starts_with("BI")) {
    return "the input half of a backward is I";
  }
  if (word.starts_with("U") && !word.starts_with("UNSHARD")) {
    return "this format has no updates; leave them out, because each stage's update comes after "
           "its last task";
  }
  std::string upper(text);
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return upper == text ? std::string(kHelp)
                       : fmt::format("actions are capital letters: {}", quoted(upper));
}

class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : rest_(text) {}
  ReadSchedule run();

 private:
  void line(std::string_view text);
  void cell(std::string_view text, Location at);
  [[nodiscard]] static std::optional<Task> task(std::string_view text);
  [[nodiscard]] Task compute(std::string_view text, Location at) const;
  [[nodiscard]] bool communication(std::string_view text, Location at);
  [[nodiscard]] Cell overlap(std::string_view text, Location at) const;

  std::string_view rest_;
  std::size_t line_ = 0;
  std::size_t cells_ = 0;
  bool blanks_ = false;
  std::vector<Schedule::Row> rows_;
  std::vector<CommAction> comms_;
  int position_ = 0;  // compute cells so far in this row
  formats::FaultList faults_;
};

/// Returns the task of "0F1", or nothing.
std::optional<Task> CsvReader::task(std::string_view text) {
  const auto stage = formats::leading_number(text);
  const auto kind = stage && !text.empty() ? formats::kind_of(text.front()) : std::nullopt;
  const auto microbatch =
      kind && *kind != CellKind::Update ? formats::whole_number(text.substr(1)) : std::nullopt;
  return microbatch ? std::optional<Task>({*kind, StageId(*stage), Microbatch(*microbatch)})
                    : std::nullopt;
}

Task CsvReader::compute(std::string_view text, Location at) const {
  const auto found = task(text);
  if (!found) {
    fail(at, fmt::format("{} is not an action; {}", quoted(text), advice(text)));
  }
  formats::require_sane(*found, text, at);
  return *found;
}

/// Returns whether the cell was a communication action, and keeps it if so.
bool CsvReader::communication(std::string_view text, Location at) {
  std::string_view rest = text;
  const auto stage = formats::leading_number(rest);
  if (!stage) {
    return false;
  }
  for (const CommKind kind : kCommKinds) {
    const std::string_view word = to_string(kind);
    if (!rest.starts_with(word)) {
      continue;
    }
    const std::string_view number = rest.substr(word.size());
    const auto microbatch = is_transfer(kind) ? formats::whole_number(number)
                            : number.empty()  ? std::optional<int>(0)
                                              : std::nullopt;
    if (!microbatch) {
      fail(at, fmt::format("{} is not an action; {}", quoted(text), advice(text)));
    }
    const Task sane{CellKind::Forward, StageId(*stage), Microbatch(*microbatch)};
    formats::require_sane(sane, text, at);
    comms_.push_back(
        {kind, sane.stage, sane.microbatch, static_cast<int>(rows_.size()) - 1, position_});
    return true;
  }
  return false;
}

Cell CsvReader::overlap(std::string_view text, Location at) const {
  const std::size_t close = text.find(')');
  if (close == std::string_view::npos || text.substr(close + 1) != kOverlap) {
    fail(at, fmt::format("{} is not an overlap; write (0F7;7B3)OVERLAP_F_B", quoted(text)));
  }
  std::string_view members = text.substr(1, close - 1);
  std::vector<Task> group;
  while (true) {
    const std::size_t semicolon = members.find(';');
    group.push_back(compute(formats::trim(members.substr(0, semicolon)), at));
    if (semicolon == std::string_view::npos) {
      break;
    }
    members.remove_prefix(semicolon + 1);
  }
  if (group.size() < 2) {
    fail(at, fmt::format("{} overlaps one action with nothing; name two or more", quoted(text)));
  }
  return Cell(std::move(group));
}

void CsvReader::cell(std::string_view text, Location at) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text = formats::trim(text.substr(1, text.size() - 2));
  }
  Schedule::Row& row = rows_.back();
  if (text.empty()) {
    blanks_ = true;
    row.emplace_back();
    return;
  }
  if (const auto plain = task(text)) {  // nearly every cell
    formats::require_sane(*plain, text, at);
    row.emplace_back(*plain);
  } else if (communication(text, at)) {
    return;
  } else {
    row.push_back(text.front() == '(' ? overlap(text, at) : Cell(compute(text, at)));
  }
  ++position_;
}

void CsvReader::line(std::string_view text) {
  if (!formats::has_room(rows_.size(), cells_)) {
    fail({line_, 1}, formats::kNoRoom);
  }
  rows_.emplace_back();
  position_ = 0;
  if (formats::trim(text).empty()) {
    return;  // a rank without tasks
  }
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view whole = text.substr(begin, comma - begin);
    const std::string_view trimmed = formats::trim(whole);
    const std::size_t indent =
        trimmed.empty() ? 0 : static_cast<std::size_t>(trimmed.data() - whole.data());
    if (!formats::has_room(rows_.size() - 1, ++cells_)) {
      fail({line_, begin + indent + 1}, formats::kNoRoom);
    }
    faults_.attempt([&] { cell(trimmed, {line_, begin + indent + 1}); });
    if (comma == text.size()) {
      return;
    }
    begin = comma + 1;
  }
}

ReadSchedule CsvReader::run() {
  formats::require_size(rest_);
  if (rest_.starts_with("\xEF\xBB\xBF")) {
    rest_.remove_prefix(3);  // a byte order mark, which spreadsheets write
  }
  while (!rest_.empty()) {
    ++line_;
    const std::size_t newline = std::min(rest_.find('\n'), rest_.size());
    line(rest_.substr(0, newline));
    rest_.remove_prefix(std::min(newline + 1, rest_.size()));
  }
  faults_.refuse_if_any();
  if (!formats::hold_task(rows_)) {
    throw Error(Errc::ScheduleParse,
                "the file has no compute cell; write one line per rank, e.g. 0F0,0B0");
  }
  const bool array = blanks_ && comms_.empty();
  if (array && !formats::pad(rows_)) {
    fail({line_, 1}, formats::kNoRoom);
  }
  return {Schedule(array ? Schedule::Form::Array : Schedule::Form::List, std::move(rows_)),
          std::move(comms_)};
}

}  // namespace

bool looks_like_csv(std::string_view rows) {
  const std::string_view row = rows.substr(0, rows.find_first_of("#\n"));
  return !row.starts_with('[') && !row.starts_with('{') && row.find(',') != std::string_view::npos;
}

ReadSchedule parse_pytorch_csv(std::string_view text) {
  return CsvReader(text).run();
}

}  // namespace stagecraft
