#include "stagecraft/tools/schedule/timeline_text.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/tools/schedule/number_text.h"
#include "stagecraft/tools/schedule/table.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kRowsShown = 32;
constexpr std::size_t kBubblesShown = 5;

std::vector<std::string> row_cells(const Timeline& timeline, std::size_t r) {
  const RowTimeline& row = timeline.rows[r];
  return {fmt::format("d{}", r),
          number_text(row.busy),
          number_text(row.idle),
          percent_text(timeline.bubble_fraction(r)),
          number_text(row.span_idle),
          std::to_string(row.peak_in_flight),
          number_text(row.bubbles.warm_up),
          number_text(row.bubbles.dependency),
          number_text(row.bubbles.transfer),
          number_text(row.bubbles.drain)};
}

std::vector<std::string> total_cells(const Timeline& timeline) {
  RowTimeline all;
  for (const RowTimeline& row : timeline.rows) {
    all.busy += row.busy;
    all.idle += row.idle;
    all.span_idle += row.span_idle;
    all.bubbles.warm_up += row.bubbles.warm_up;
    all.bubbles.dependency += row.bubbles.dependency;
    all.bubbles.transfer += row.bubbles.transfer;
    all.bubbles.drain += row.bubbles.drain;
  }
  const double whole = timeline.makespan * static_cast<double>(timeline.rows.size());
  return {"all",
          number_text(all.busy),
          number_text(all.idle),
          percent_text(whole > 0 ? all.idle / whole : 0),
          number_text(all.span_idle),
          "",
          number_text(all.bubbles.warm_up),
          number_text(all.bubbles.dependency),
          number_text(all.bubbles.transfer),
          number_text(all.bubbles.drain)};
}

const std::vector<std::string> kHead{"row",
                                     "busy",
                                     "idle",
                                     "bubble",
                                     "span idle",
                                     "in flight",
                                     "warm-up",
                                     "dependency",
                                     "communication",
                                     "drain"};
constexpr std::ptrdiff_t kFirstCause = 6;

/// On narrow screens the causes of idle time make a table of their own.
std::string tables_text(const std::vector<std::vector<std::string>>& rows, int width) {
  std::string whole = table_text(kHead, rows);
  if (whole.find('\n') <= static_cast<std::size_t>(width)) {
    return whole;
  }
  const auto part = [&](bool causes) {
    const auto columns = [&](const std::vector<std::string>& cells) {
      const auto middle = cells.begin() + kFirstCause;
      std::vector<std::string> kept(causes ? middle : cells.begin(), causes ? cells.end() : middle);
      if (causes) {
        kept.insert(kept.begin(), cells.front());
      }
      return kept;
    };
    std::vector<std::vector<std::string>> kept;
    std::ranges::transform(rows, std::back_inserter(kept), columns);
    return table_text(columns(kHead), kept);
  };
  return part(false) + '\n' + part(true);
}

std::string rows_text(const Timeline& timeline, int width) {
  std::vector<std::vector<std::string>> rows;
  const std::size_t shown = std::min(timeline.rows.size(), kRowsShown);
  for (std::size_t r = 0; r < shown; ++r) {
    rows.push_back(row_cells(timeline, r));
  }
  rows.push_back(total_cells(timeline));
  const std::string tables = tables_text(rows, width);
  return shown == timeline.rows.size() ? tables
                                       : fmt::format("{}({} rows not shown; --json has them)\n",
                                                     tables,
                                                     timeline.rows.size() - shown);
}

/// "0F0 -> 1F0 -> ... -> 0B7": whole when it fits three lines, else both ends.
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
  std::vector<Bubble> bubbles = list_bubbles(timeline);
  const std::size_t shown = std::min(bubbles.size(), kBubblesShown);
  std::partial_sort(bubbles.begin(),
                    bubbles.begin() + static_cast<std::ptrdiff_t>(shown),
                    bubbles.end(),
                    [](const Bubble& a, const Bubble& b) {
                      return a.length() != b.length() ? a.length() > b.length()
                             : a.row != b.row         ? a.row < b.row
                                                      : a.start < b.start;
                    });
  std::string text = shown > 0 ? "\nlargest bubbles\n" : "\nno bubble at all\n";
  for (std::size_t i = 0; i < shown; ++i) {
    text += bubble_text(bubbles[i]);
  }
  return text;
}

}  // namespace

std::string timeline_text(const Timeline& timeline, int width) {
  return fmt::format("makespan {}\n\n{}{}\ncritical path, {}\n{}\n",
                     number_text(timeline.makespan),
                     rows_text(timeline, width),
                     largest_bubbles_text(timeline),
                     count_text(timeline.critical_path.size(), "task"),
                     path_text(timeline.critical_path, width));
}

}  // namespace stagecraft::tools
