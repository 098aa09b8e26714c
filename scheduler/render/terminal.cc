#include "stagecraft/scheduler/render/terminal.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/surplus.h"
#include "stagecraft/scheduler/render/terminal_colors.h"

namespace stagecraft {
namespace {

/// Limits the blocks that show a long schedule. Blocks with marks are shown beyond the limit.
constexpr std::size_t kMaxBlocks = 6;
constexpr std::size_t kMaxRows = 64;
constexpr std::size_t kMaxListedBelow = 50;  // violations; the others are counted

class Grid {
 public:
  Grid(const Schedule& schedule,
       const StageGraph& graph,
       const std::vector<Violation>& violations,
       const RenderOptions& options);
  std::string draw() const;

 private:
  [[nodiscard]] std::string block(std::size_t begin, std::size_t end) const;
  [[nodiscard]] std::string cell(std::size_t row, std::size_t column) const;
  [[nodiscard]] bool block_is_marked(std::size_t begin, std::size_t end) const;
  [[nodiscard]] bool row_is_shown(std::size_t row) const;
  [[nodiscard]] std::string name(const Task& task) const;
  [[nodiscard]] std::string name(const Cell& cell) const;
  [[nodiscard]] std::string in_color(const Task& task) const;
  [[nodiscard]] bool is_marked(std::size_t row, std::size_t column) const {
    return marked_.contains({static_cast<int>(row), static_cast<int>(column)});
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  const RenderOptions& options_;
  int stages_;
  std::set<std::pair<int, int>> marked_;  // row, column
  std::set<int> marked_rows_;
  std::vector<std::size_t> width_;  // by column, without the space between
  std::size_t label_width_ = 0;
};

Grid::Grid(const Schedule& schedule,
           const StageGraph& graph,
           const std::vector<Violation>& violations,
           const RenderOptions& options)
    : schedule_(schedule),
      graph_(graph),
      options_(options),
      stages_(std::max(schedule.stages(), 1)),
      width_(schedule.columns(), 1) {
  for (const Violation& v : violations) {
    marked_.insert(v.cells.begin(), v.cells.end());
    marked_rows_.insert(v.row);
  }
  for (const auto& [row, column] : marked_) {
    marked_rows_.insert(row);
  }
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    const Schedule::Row& row = schedule.rows()[r];
    for (std::size_t c = 0; c < row.size(); ++c) {
      width_[c] = std::max(width_[c], name(row[c]).size() + (is_marked(r, c) ? 2 : 0));
    }
  }
  for (std::size_t c = 0; c < width_.size(); ++c) {
    width_[c] = std::max(width_[c], std::to_string(c).size());
  }
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    label_width_ = std::max(label_width_, row_name(schedule, r).size() + 1);
  }
}

std::string centered(const std::string& text, std::size_t width) {
  return fmt::format("{:^{}}", text, width);
}

std::string Grid::name(const Task& task) const {
  return graph_.is_surplus(task) ? fmt::format("({})", to_string(task)) : to_string(task);
}

std::string Grid::name(const Cell& cell) const {
  if (cell.idle()) {
    return to_string(cell);
  }
  std::string text;
  for (const Task& task : cell.tasks()) {
    text += (text.empty() ? "" : "|") + name(task);
  }
  return text;
}

/// Fills a backward, or its input half, with its stage's color, writes any other task in it, and
/// dims a task that does nothing.
std::string Grid::in_color(const Task& task) const {
  if (graph_.is_surplus(task)) {
    return fmt::format("\x1b[2m{}\x1b[0m", name(task));
  }
  const int color = terminal_color(task.stage.value, stages_);
  const bool filled = task.kind == CellKind::Backward || task.kind == CellKind::BackwardInput;
  return filled ? fmt::format("\x1b[38;5;16;48;5;{}m{}\x1b[0m", color, to_string(task))
                : fmt::format("\x1b[38;5;{}m{}\x1b[0m", color, to_string(task));
}

std::string Grid::cell(std::size_t row, std::size_t column) const {
  const Cell& content = schedule_.rows()[row][column];
  const bool marked = is_marked(row, column);
  const std::string text = marked ? fmt::format("[{}]", name(content)) : name(content);
  const std::string padded = centered(text, width_[column]);
  if (!options_.color) {
    return padded;
  }
  if (marked) {
    return fmt::format("\x1b[1;37;41m{}\x1b[0m", padded);
  }
  if (content.idle()) {
    return fmt::format("\x1b[2m{}\x1b[0m", padded);
  }
  const std::size_t before = padded.find_first_not_of(' ');
  std::string colored = padded.substr(0, before);
  for (const Task& task : content.tasks()) {
    colored += fmt::format("{}{}", colored.size() > before ? "|" : "", in_color(task));
  }
  return colored + padded.substr(before + text.size());
}

bool Grid::row_is_shown(std::size_t row) const {
  return schedule_.rows().size() <= kMaxRows || row < kMaxRows / 2 ||
         marked_rows_.contains(static_cast<int>(row));
}

bool Grid::block_is_marked(std::size_t begin, std::size_t end) const {
  return std::ranges::any_of(marked_, [&](const auto& place) {
    return place.second >= static_cast<int>(begin) && place.second < static_cast<int>(end);
  });
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

std::string Grid::block(std::size_t begin, std::size_t end) const {
  std::string line(label_width_, ' ');
  for (std::size_t c = begin; c < end; ++c) {
    line += ' ' + centered(std::to_string(c), width_[c]);
  }
  std::string text = without_trailing_blanks(std::move(line));
  std::size_t hidden = 0;
  for (std::size_t r = 0; r < schedule_.rows().size(); ++r) {
    if (!row_is_shown(r)) {
      ++hidden;
      continue;
    }
    line = fmt::format("{:<{}}", row_name(schedule_, r), label_width_);
    for (std::size_t c = begin; c < std::min(end, schedule_.rows()[r].size()); ++c) {
      line += ' ' + cell(r, c);
    }
    text += without_trailing_blanks(std::move(line));
  }
  return hidden == 0 ? text : text + fmt::format("({} rows not shown)\n", hidden);
}

std::string Grid::draw() const {
  std::string text;
  std::size_t shown = 0;
  std::size_t skipped_from = 0;
  const auto flush_skipped = [&](std::size_t before) {
    if (skipped_from < before) {
      text += fmt::format("\n(columns {} to {} not shown)\n", skipped_from, before - 1);
    }
  };
  for (std::size_t begin = 0; begin < width_.size();) {
    std::size_t used = label_width_;
    std::size_t end = begin;
    while (end < width_.size() &&
           (end == begin ||
            used + 1 + width_[end] <= static_cast<std::size_t>(std::max(options_.width, 1)))) {
      used += 1 + width_[end++];
    }
    if (shown < kMaxBlocks || (shown < 4 * kMaxBlocks && block_is_marked(begin, end))) {
      flush_skipped(begin);
      text += begin == 0 ? "" : "\n";
      text += block(begin, end);
      skipped_from = end;
      ++shown;
    }
    begin = end;
  }
  flush_skipped(width_.size());
  return text;
}

}  // namespace

std::string render(const Schedule& schedule,
                   const std::vector<Violation>& violations,
                   const RenderOptions& options) {
  const StageGraph graph = options.graph != nullptr ? *options.graph : schedule.stage_graph();
  std::string text = Grid(schedule, graph, violations, options).draw();
  if (const std::vector<Surplus> surplus = find_surplus(schedule, graph); !surplus.empty()) {
    text += fmt::format("\nin parentheses, {}\n", to_string(surplus, graph));
  }
  if (!violations.empty()) {
    text += '\n';
  }
  const std::size_t listed = std::min(violations.size(), kMaxListedBelow);
  for (std::size_t i = 0; i < listed; ++i) {
    const std::string line = to_string(violations[i]);
    const std::size_t rule = violations[i].rule.size();
    text += options.color
                ? fmt::format("\x1b[1;31m{}\x1b[0m{}\n", line.substr(0, rule), line.substr(rule))
                : line + '\n';
  }
  if (listed < violations.size()) {
    text += fmt::format("... and {} more\n", violations.size() - listed);
  }
  return text;
}

}  // namespace stagecraft
