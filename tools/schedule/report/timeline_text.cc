#include "stagecraft/tools/schedule/report/timeline_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/schedule/report/largest_bubbles.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kRowsShown = 32;

using Cells = std::vector<std::string>;

/// One line of the table, in two parts, which a narrow screen separates.
struct Line {
  std::string label;
  Cells figures;
  Cells causes;
};

Line head_line(bool bytes) {
  Line line{"row",
            {"busy", "idle", "bubble", "span idle", "in flight"},
            {"warm-up", "dependency", "transfer", "drain"}};
  if (bytes) {
    line.figures.emplace_back("peak bytes");
  }
  return line;
}

/// `peaks`: the cells of the peaks, which do not add up.
Line figures_line(const std::string& label,
                  const RowTimeline& row,
                  double fraction,
                  const Cells& peaks) {
  Line line{label,
            {number_text(row.busy),
             number_text(row.idle),
             percent_text(fraction),
             number_text(row.span_idle)},
            {number_text(row.bubbles.warm_up),
             number_text(row.bubbles.dependency),
             number_text(row.bubbles.transfer),
             number_text(row.bubbles.drain)}};
  line.figures.insert(line.figures.end(), peaks.begin(), peaks.end());
  return line;
}

Line row_line(const Timeline& timeline, std::size_t r, bool bytes) {
  const RowTimeline& row = timeline.rows[r];
  Cells peaks{std::to_string(row.peak_in_flight)};
  if (bytes) {
    peaks.push_back(bytes_text(row.peak_bytes));
  }
  return figures_line(fmt::format("d{}", r), row, timeline.bubble_fraction(r), peaks);
}

Line total_line(const Timeline& timeline, bool bytes) {
  RowTimeline all;
  for (const RowTimeline& row : timeline.rows) {
    all.busy += row.busy;
    all.idle += row.idle;
    all.span_idle += row.span_idle;
    all.bubbles += row.bubbles;
  }
  return figures_line("all", all, timeline.bubble_fraction(), Cells(bytes ? 2 : 1));
}

/// `part`: returns the cells of a line after its label. The first line is the head.
template <class Part>
std::string part_text(const std::vector<Line>& lines, Part&& part) {
  std::vector<Cells> rows;
  for (const Line& line : lines) {
    Cells cells = part(line);
    cells.insert(cells.begin(), line.label);
    rows.push_back(std::move(cells));
  }
  return table_text(rows.front(), {rows.begin() + 1, rows.end()});
}

/// On narrow screens, puts the causes of idle time into a table of their own.
std::string tables_text(const std::vector<Line>& lines, int width) {
  std::string whole = part_text(lines, [](const Line& line) {
    Cells cells = line.figures;
    cells.insert(cells.end(), line.causes.begin(), line.causes.end());
    return cells;
  });
  if (whole.find('\n') <= static_cast<std::size_t>(width)) {
    return whole;
  }
  return part_text(lines, [](const Line& line) { return line.figures; }) + '\n' +
         part_text(lines, [](const Line& line) { return line.causes; });
}

std::string rows_text(const Timeline& timeline, const TimelineTextOptions& options) {
  std::vector<Line> lines{head_line(options.bytes)};
  const std::size_t shown = std::min(timeline.rows.size(), kRowsShown);
  for (std::size_t r = 0; r < shown; ++r) {
    lines.push_back(row_line(timeline, r, options.bytes));
  }
  lines.push_back(total_line(timeline, options.bytes));
  const std::string tables = tables_text(lines, options.width);
  return shown == timeline.rows.size() ? tables
                                       : fmt::format("{}({} rows not shown; --json has them)\n",
                                                     tables,
                                                     timeline.rows.size() - shown);
}

/// Returns "0F0 -> 1F0 -> ... -> 0B7": whole if it fits into three lines, else both ends.
std::string path_text(const std::vector<Task>& path, int width) {
  constexpr std::string_view kArrow = " -> ";
  const std::size_t room = 3 * static_cast<std::size_t>(std::max(width, 20)) - 20;
  std::size_t needed = 0;
  std::vector<std::string> words;
  for (const Task& task : path) {
    words.push_back(to_string(task));
    needed += words.back().size() + kArrow.size();
  }
  if (needed > room) {
    const std::size_t keep = std::max<std::size_t>(2, room * words.size() / needed) / 2;
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(keep),
                words.end() - static_cast<std::ptrdiff_t>(keep));
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(keep), "...");
  }
  std::string text = " ";
  std::size_t line = 1;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = i == 0 ? words[i] : fmt::format("-> {}", words[i]);
    if (i > 0 && line + 1 + word.size() > static_cast<std::size_t>(std::max(width, 20))) {
      text += "\n   ";
      line = 3;
    }
    text += ' ' + word;
    line += 1 + word.size();
  }
  return text;
}

std::string bubble_text(const Bubble& bubble) {
  std::string text = fmt::format("  d{}  {} from {} to {}: {}",
                                 bubble.row,
                                 number_text(bubble.length()),
                                 number_text(bubble.start),
                                 number_text(bubble.end),
                                 name(bubble.cause));
  if (bubble.next != nullptr) {
    text += fmt::format(", {}", to_string(*bubble.next->cell));
    if (bubble.next->waited_for) {
      text += fmt::format(" waited for {}", to_string(*bubble.next->waited_for));
    }
  }
  return text + '\n';
}

std::string largest_bubbles_text(const Timeline& timeline) {
  const std::vector<Bubble> bubbles = largest_bubbles(timeline);
  std::string text = bubbles.empty() ? "\nno bubble at all\n" : "\nlargest bubbles\n";
  for (const Bubble& bubble : bubbles) {
    text += bubble_text(bubble);
  }
  return text;
}

}  // namespace

std::string timeline_text(const Timeline& timeline, const TimelineTextOptions& options) {
  return fmt::format("makespan {}\n\n{}{}\ncritical path, {}\n{}\n",
                     number_text(timeline.makespan),
                     rows_text(timeline, options),
                     largest_bubbles_text(timeline),
                     count_text(timeline.critical_path.size(), "task"),
                     path_text(timeline.critical_path, options.width));
}

}  // namespace stagecraft::tools
