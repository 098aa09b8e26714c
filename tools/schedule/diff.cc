/// `stagecraft schedule diff`
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/scheduler/hash.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/cost_options.h"
#include "stagecraft/tools/schedule/input.h"
#include "stagecraft/tools/schedule/number_text.h"
#include "stagecraft/tools/schedule/table.h"
#include "stagecraft/tools/schedule/verdict.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kRowsShown = 32;

/// One of the two schedules, as workers follow it.
struct Side {
  ScheduleFile file;
  Schedule list;
  std::optional<Timeline> timeline;  ///< of a valid schedule
  std::size_t violations = 0;
};

Side side_of(ScheduleFile read, const Costs& costs) {
  Side side{std::move(read), Schedule(Schedule::Form::List, {})};
  side.list = side.file.schedule.to_list();
  side.violations = violations_of(side.file).size();
  if (side.violations == 0) {
    side.timeline = timeline_of(side.list, side.file.graph, costs);
  }
  return side;
}

/// What two schedules can differ in beside their cells.
std::string graph_difference(const Side& a, const Side& b) {
  if (a.file.graph.size() != b.file.graph.size() || a.file.graph.edges() != b.file.graph.edges() ||
      a.file.graph.replica_pairs() != b.file.graph.replica_pairs()) {
    return "their stage graphs differ\n";
  }
  if (a.file.graph.frozen() != b.file.graph.frozen()) {
    return "their frozen stages differ\n";
  }
  if (a.file.graph.microbatch_sizes() != b.file.graph.microbatch_sizes()) {
    return "their sizes of microbatches differ\n";
  }
  return a.file.schedule.microbatches() != b.file.schedule.microbatches()
             ? "their numbers of microbatches differ\n"
             : "";
}

const Schedule::Row& row_of(const Side& side, std::size_t r) {
  static const Schedule::Row none;
  return r < side.list.rows().size() ? side.list.rows()[r] : none;
}

/// The position of the first task in which the rows differ, or nothing.
std::optional<std::size_t> first_difference(const Schedule::Row& a, const Schedule::Row& b) {
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  return in_a == a.end() && in_b == b.end()
             ? std::nullopt
             : std::optional(static_cast<std::size_t>(in_a - a.begin()));
}

std::string task_at(const Schedule::Row& row, std::size_t position) {
  return position < row.size() ? to_string(row[position]) : "(end)";
}

/// `text`: how such a number is written.
template <class Text>
std::string change_text(double a, double b, Text&& text) {
  return a == b
             ? text(a)
             : fmt::format(
                   "{} -> {} ({}{})", text(a), text(b), b > a ? "+" : "-", text(std::abs(b - a)));
}

/// What becomes of the row: idle time, peak in flight and bytes, where both sides have it.
std::vector<std::string> effects(const Side& a, const Side& b, std::size_t r, bool bytes) {
  const bool both =
      a.timeline && b.timeline && r < a.timeline->rows.size() && r < b.timeline->rows.size();
  std::vector<std::string> cells(bytes ? 3 : 2);
  if (!both) {
    return cells;
  }
  const RowTimeline& of_a = a.timeline->rows[r];
  const RowTimeline& of_b = b.timeline->rows[r];
  cells[0] = change_text(of_a.idle, of_b.idle, number_text);
  cells[1] = change_text(of_a.peak_in_flight, of_b.peak_in_flight, number_text);
  if (bytes) {
    cells[2] = change_text(of_a.peak_bytes, of_b.peak_bytes, bytes_text);
  }
  return cells;
}

/// One line per row that differs; empty when none does.
std::string rows_text(const Side& a, const Side& b, bool bytes) {
  std::vector<std::vector<std::string>> lines;
  std::size_t differing = 0;
  const std::size_t rows = std::max(a.list.rows().size(), b.list.rows().size());
  for (std::size_t r = 0; r < rows; ++r) {
    const auto position = first_difference(row_of(a, r), row_of(b, r));
    if (!position || ++differing > kRowsShown) {
      continue;
    }
    std::vector<std::string> line{fmt::format("d{}", r),
                                  std::to_string(*position),
                                  task_at(row_of(a, r), *position),
                                  task_at(row_of(b, r), *position)};
    std::ranges::move(effects(a, b, r, bytes), std::back_inserter(line));
    lines.push_back(std::move(line));
  }
  if (differing == 0) {
    return "";
  }
  std::string text = fmt::format("{} of {} differ\n", differing, count_text(rows, "row"));
  std::vector<std::string> head{"row", "position", "A", "B", "idle", "in flight"};
  if (bytes) {
    head.emplace_back("peak bytes");
  }
  text += table_text(head, lines);
  if (differing > kRowsShown) {
    text += fmt::format("({} more rows differ)\n", differing - kRowsShown);
  }
  return text;
}

template <class Value>
double largest(const Timeline& timeline, Value RowTimeline::*value) {
  double peak = 0;
  for (const RowTimeline& row : timeline.rows) {
    peak = std::max(peak, static_cast<double>(row.*value));
  }
  return peak;
}

std::string totals_text(const Side& a, const Side& b, bool bytes) {
  std::string text;
  for (const Side* side : {&a, &b}) {
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
  const auto change = [&](auto value, auto&& written) {
    return change_text(largest(*a.timeline, value), largest(*b.timeline, value), written);
  };
  text = fmt::format("makespan            {}\nlargest in flight   {}\n",
                     change_text(a.timeline->makespan, b.timeline->makespan, number_text),
                     change(&RowTimeline::peak_in_flight, number_text));
  if (bytes) {
    text += fmt::format("largest peak bytes  {}\n", change(&RowTimeline::peak_bytes, bytes_text));
  }
  return text;
}

}  // namespace

ExitCode diff_schedules(const Words& words, Console& console) {
  std::string path_a;
  std::string path_b;
  ReadOptions read;
  CostOptions options;
  CLI::App app(
      "Shows where two schedules part on each device, and what that does to time and "
      "memory.",
      "stagecraft schedule diff");
  app.footer(
      "Lists are compared: columns play no part when a schedule runs. Exit status: 0 equal, "
      "1 different,\n2 unreadable or wrong usage.");
  app.add_option("A", path_a, "a schedule file; - is standard input")->required()->type_name("");
  app.add_option("B", path_b, "another")->required()->type_name("");
  add_cost_options(app, options);
  add_read_options(app, read);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  ScheduleFile file_a = read_schedule(path_a, read, console);
  ScheduleFile file_b = read_schedule(path_b, read, console);
  const Costs costs = costs_of(app, options, console);
  const Side a = side_of(std::move(file_a), costs);
  const Side b = side_of(std::move(file_b), costs);
  const std::string differences = graph_difference(a, b) + rows_text(a, b, knows_memory(costs));
  if (differences.empty()) {
    const bool same_columns = a.file.schedule == b.file.schedule;
    write_output(
        "",
        fmt::format(
            "equal{}: {}\n", same_columns ? "" : " (only columns differ)", size_text(a.file)),
        console);
    return ExitCode::Good;
  }
  write_output("",
               fmt::format("A: {}: {}\nB: {}: {}\n\n{}\n{}",
                           a.file.name,
                           size_text(a.file),
                           b.file.name,
                           size_text(b.file),
                           differences,
                           totals_text(a, b, knows_memory(costs))),
               console);
  return ExitCode::Failed;
}

}  // namespace stagecraft::tools
