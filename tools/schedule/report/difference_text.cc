#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/schedule/report/difference.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kDifferingRowsShown = 32;

/// `text`: formats the number. Numbers with equal texts count as equal, since weights round.
template <class Text>
std::string change_text(double a, double b, Text&& text) {
  const std::string from = text(a);
  const std::string to = text(b);
  return from == to
             ? from
             : fmt::format("{} -> {} ({}{})", from, to, b > a ? "+" : "-", text(std::abs(b - a)));
}

/// Returns the effects on the row: idle time, peak in flight and bytes, if both sides have them.
std::vector<std::string> effects(const Difference& d, std::size_t r) {
  std::vector<std::string> cells(d.bytes ? 3 : 2);
  if (!d.simulated() || r >= std::min(d.a.timeline->rows.size(), d.b.timeline->rows.size())) {
    return cells;
  }
  const RowTimeline& of_a = d.a.timeline->rows[r];
  const RowTimeline& of_b = d.b.timeline->rows[r];
  cells[0] = change_text(of_a.idle, of_b.idle, number_text);
  cells[1] = change_text(d.a.in_flight(r), d.b.in_flight(r), number_text);
  if (d.bytes) {
    cells[2] = change_text(of_a.peak_bytes, of_b.peak_bytes, bytes_text);
  }
  return cells;
}

/// Returns one line per row that differs; empty if none does.
std::string rows_text(const Difference& d) {
  if (d.rows.empty()) {
    return "";
  }
  std::vector<std::string> head{"row", "position", "A", "B", "idle", "in flight"};
  if (d.bytes) {
    head.emplace_back("peak bytes");
  }
  std::vector<std::vector<std::string>> lines;
  for (const DifferentRow& row : d.rows) {
    if (lines.size() == kDifferingRowsShown) {
      break;
    }
    std::vector<std::string> line{
        fmt::format("d{}", row.row), std::to_string(row.position), row.task_a, row.task_b};
    std::ranges::move(effects(d, row.row), std::back_inserter(line));
    lines.push_back(std::move(line));
  }
  const std::size_t rows = std::max(d.a.list.rows().size(), d.b.list.rows().size());
  std::string text = fmt::format("{} of {} differ\n", d.rows.size(), count_text(rows, "row"));
  text += table_text(head, lines);
  if (d.rows.size() > kDifferingRowsShown) {
    text += fmt::format("({} more rows differ; --json has them)\n",
                        d.rows.size() - kDifferingRowsShown);
  }
  return text;
}

/// Returns how to compare the figures of both; empty if their stages are the same work.
std::string weights_text(const Difference& d) {
  const int of_a = d.a.model_stages();
  const int of_b = d.b.model_stages();
  if (of_a == of_b) {
    return "";
  }
  if (d.stated) {
    return fmt::format("not normalized: --costs gives the costs of the {} of A and the {} of B\n",
                       count_text(of_a, "stage"),
                       of_b);
  }
  const char more = of_a > of_b ? 'A' : 'B';
  const char fewer = of_a > of_b ? 'B' : 'A';
  return fmt::format(
      "normalized to one model of {} in A and {} in B:\na stage of {} takes {}/{} of the "
      "time and activations of a stage of {}\n",
      count_text(of_a, "stage"),
      of_b,
      more,
      std::min(of_a, of_b),
      std::max(of_a, of_b),
      fewer);
}

double largest_in_flight(const DifferentSide& side) {
  double peak = 0;
  for (std::size_t r = 0; r < side.timeline->rows.size(); ++r) {
    peak = std::max(peak, side.in_flight(r));
  }
  return peak;
}

double largest_bytes(const DifferentSide& side) {
  double peak = 0;
  for (const RowTimeline& row : side.timeline->rows) {
    peak = std::max(peak, row.peak_bytes);
  }
  return peak;
}

std::string totals_text(const Difference& d) {
  std::string text;
  for (const DifferentSide* side : {&d.a, &d.b}) {
    if (!side->timeline) {
      text += fmt::format(
          "{} has {} and cannot be simulated; stagecraft schedule check shows "
          "all\n",
          side->file.name,
          count_text(side->violations, "violation"));
    }
  }
  if (!text.empty()) {
    return text;
  }
  text = weights_text(d);
  text +=
      fmt::format("makespan            {}\nbubble              {} -> {}\nlargest in flight   {}\n",
                  change_text(d.a.timeline->makespan, d.b.timeline->makespan, number_text),
                  percent_text(d.a.timeline->bubble_fraction()),
                  percent_text(d.b.timeline->bubble_fraction()),
                  change_text(largest_in_flight(d.a), largest_in_flight(d.b), number_text));
  if (d.bytes) {
    text += fmt::format("largest peak bytes  {}\n",
                        change_text(largest_bytes(d.a), largest_bytes(d.b), bytes_text));
  }
  return text;
}

}  // namespace

std::string difference_text(const Difference& d) {
  return fmt::format("A: {}: {}\nB: {}: {}\n\n{}{}\n{}",
                     d.a.file.name,
                     size_text(d.a.file),
                     d.b.file.name,
                     size_text(d.b.file),
                     d.beside.empty() ? "" : d.beside + '\n',
                     rows_text(d),
                     totals_text(d));
}

}  // namespace stagecraft::tools
