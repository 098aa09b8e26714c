#include "stagecraft/tools/trace/report.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/count_text.h"

namespace stagecraft::tools {
namespace {

using Object = nlohmann::ordered_json;

constexpr double kMillisecond = 1e-3;

/// Returns " (+1.2 %)"; nothing without a plan that takes time.
std::string deviation(double measured, double planned) {
  return planned > 0 ? fmt::format(" ({:+.1f} %)", (measured / planned - 1) * 100) : "";
}

/// Returns the end of a file's name if it is longer than `room`: the end says most.
std::string ending(const std::string& file, std::size_t room) {
  return file.size() <= room ? file : "..." + file.substr(file.size() - room + 3);
}

std::string bill_line(std::string_view rank, std::string_view what, const Bill& bill) {
  const auto ms = [](double seconds) { return seconds / kMillisecond; };
  return fmt::format(
      "{:>4}  {:<8} {:>9.2f} {:>8.2f} {:>8.2f} {:>10.2f} {:>8.2f} {:>8.2f} {:>8.2f}\n",
      rank,
      what,
      ms(bill.busy),
      ms(bill.idle()),
      ms(bill.bubbles.warm_up),
      ms(bill.bubbles.dependency),
      ms(bill.bubbles.transfer),
      ms(bill.overhead),
      ms(bill.bubbles.drain));
}

std::size_t row_of(const Layout& layout, int rank) {
  return static_cast<std::size_t>(layout.row_of(Rank(rank)));
}

/// Returns the first of the ranks of a cell's row: the measured one.
int rank_of(const Layout& layout, const CellComparison& cell) {
  return layout.ranks_of(cell.row).front().value;
}

Bill sum(const Comparison& comparison, const Layout& layout, Bill RowComparison::*which) {
  Bill total;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Bill& bill = comparison.rows[row_of(layout, rank)].*which;
    total.busy += bill.busy;
    total.bubbles += bill.bubbles;
    total.overhead += bill.overhead;
  }
  return total;
}

double bubble_fraction(const Bill& bill) {
  const double all = bill.busy + bill.idle();
  return all > 0 ? bill.idle() / all : 0;
}

/// Every rank finishes a step when the slowest does. So each part outside the makespan is reported
/// as the mean over the ranks, and the parts add up.
Surroundings mean_surroundings(const Measurements& measured, const Layout& layout) {
  Surroundings mean;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const Surroundings s = measured.surroundings(row_of(layout, rank));
    mean.start += s.start / layout.ranks();
    mean.vote += s.vote / layout.ranks();
    mean.update += s.update / layout.ranks();
    mean.other += s.other / layout.ranks();
  }
  return mean;
}

/// Returns "4 ranks with 1 thread each share 2 processors"; empty if each thread has its own.
std::string shared_processors(const TraceHeader& run) {
  const auto threads = static_cast<int>(run.ranks.size()) * run.threads_per_worker;
  if (threads <= run.processors) {
    return "";
  }
  return fmt::format("{} with {} each share {}",
                     count_text(run.ranks.size(), "rank"),
                     count_text(run.threads_per_worker, "thread"),
                     count_text(run.processors, "processor"));
}

/// Returns the largest causes of a bubble, e.g. "dependency 14.0 %, drain 7.0 %".
std::string causes_text(const Bill& bill) {
  constexpr std::size_t kCauses = 2;
  std::vector<std::pair<double, std::string_view>> causes{{bill.bubbles.warm_up, "warm-up"},
                                                          {bill.bubbles.dependency, "dependency"},
                                                          {bill.bubbles.transfer, "transfer"},
                                                          {bill.overhead, "overhead"},
                                                          {bill.bubbles.drain, "drain"}};
  std::ranges::stable_sort(causes, std::greater(), &std::pair<double, std::string_view>::first);
  const double all = bill.busy + bill.idle();
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < kCauses && causes[i].first > 0; ++i) {
    parts.push_back(fmt::format("{} {:.1f} %", causes[i].second, 100 * causes[i].first / all));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Object json_of(const Bill& bill) {
  return {{"busy_seconds", bill.busy},
          {"idle_seconds", bill.idle()},
          {"warm_up_seconds", bill.bubbles.warm_up},
          {"dependency_seconds", bill.bubbles.dependency},
          {"communication_seconds", bill.bubbles.transfer},
          {"overhead_seconds", bill.overhead},
          {"drain_seconds", bill.bubbles.drain}};
}

Object json_of(const Surroundings& s) {
  return {{"start_seconds", s.start},
          {"vote_seconds", s.vote},
          {"update_seconds", s.update},
          {"other_seconds", s.other}};
}

}  // namespace

std::string comparison_text(const Comparison& comparison,
                            const Measurements& measured,
                            const Layout& layout,
                            const TraceHeader& run) {
  constexpr std::size_t kRoom = 80 - std::string_view("planned with ").size();
  const double planned = comparison.planned_makespan;
  const Bill all_planned = sum(comparison, layout, &RowComparison::planned);
  const Bill all_measured = sum(comparison, layout, &RowComparison::measured);
  std::string text = fmt::format(
      "planned against measured, mean of {} step{}, milliseconds\n"
      "planned with {}\n"
      "bubble: planned {:.1f} %, measured {:.1f} % of the ranks' time\n"
      "makespan: planned {:.2f}, measured {:.2f}{}\n\n"
      "{:>4}  {:<8} {:>9} {:>8} {:>8} {:>10} {:>8} {:>8} {:>8}\n",
      measured.steps(),
      measured.steps() == 1 ? "" : "s",
      run.planned_with ? ending(run.planned_with->file, kRoom)
                       : "the mean times of this run's own tasks and transfers",
      100 * bubble_fraction(all_planned),
      100 * bubble_fraction(all_measured),
      planned / kMillisecond,
      comparison.measured_makespan / kMillisecond,
      deviation(comparison.measured_makespan, planned),
      "rank",
      "",
      "busy",
      "idle",
      "=warm-up",
      "dependency",
      "transfer",
      "overhead",
      "drain");
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const std::size_t row = row_of(layout, rank);
    text += bill_line(fmt::format("{}", rank), "planned", comparison.rows[row].planned);
    text += bill_line("", "measured", comparison.rows[row].measured);
  }
  text += bill_line("all", "planned", all_planned);
  text += bill_line("", "measured", all_measured);
  const Surroundings s = mean_surroundings(measured, layout);
  text += fmt::format(
      "a step takes {:.2f}: start {:.2f}, makespan {:.2f}, vote {:.2f},\n"
      "update {:.2f}, other {:.2f}\n",
      (s.start + comparison.measured_makespan + s.vote + s.update + s.other) / kMillisecond,
      s.start / kMillisecond,
      comparison.measured_makespan / kMillisecond,
      s.vote / kMillisecond,
      s.update / kMillisecond,
      s.other / kMillisecond);
  if (const std::string shared = shared_processors(run); !shared.empty()) {
    text += shared +
            ": tasks wait for a processor\n"
            "while they count as busy, so the measured run cannot be as short as the plan.\n";
  }
  return text;
}

std::string comparison_summary(const Comparison& comparison,
                               const Measurements& measured,
                               const Layout& layout,
                               const TraceHeader& run) {
  constexpr std::size_t kRoom = 26;
  const double planned = comparison.planned_makespan;
  const Bill all_measured = sum(comparison, layout, &RowComparison::measured);
  const std::string causes = causes_text(all_measured);
  const Surroundings s = mean_surroundings(measured, layout);
  std::string text = fmt::format(
      "makespan: {:.2f} ms, planned {:.2f} with {}{}\n"
      "bubble in it: {:.1f} %, planned {:.1f} %{}\n"
      "a step: {:.2f} ms with start {:.2f}, vote {:.2f}, update {:.2f}, other {:.2f}\n",
      comparison.measured_makespan / kMillisecond,
      planned / kMillisecond,
      run.planned_with ? ending(run.planned_with->file, kRoom) : "this run's own times",
      deviation(comparison.measured_makespan, planned),
      100 * bubble_fraction(all_measured),
      100 * bubble_fraction(sum(comparison, layout, &RowComparison::planned)),
      causes.empty() ? "" : ": " + causes,
      (s.start + comparison.measured_makespan + s.vote + s.update + s.other) / kMillisecond,
      s.start / kMillisecond,
      s.vote / kMillisecond,
      s.update / kMillisecond,
      s.other / kMillisecond);
  if (const std::string shared = shared_processors(run); !shared.empty()) {
    text += shared + ", and wait for them\n";
  }
  return text;
}

std::string cells_text(const Comparison& comparison, const Layout& layout, std::size_t limit) {
  std::string text = fmt::format("{:>4}  {:<12}  {:>13}  {:>14}  {:>12}  {:>13}  {:>9}\n",
                                 "rank",
                                 "cell",
                                 "planned start",
                                 "measured start",
                                 "planned time",
                                 "measured time",
                                 "late by");
  for (std::size_t i = 0; i < std::min(limit, comparison.cells.size()); ++i) {
    const CellComparison& cell = comparison.cells[i];
    text += fmt::format("{:>4}  {:<12}  {:>13.2f}  {:>14.2f}  {:>12.2f}  {:>13.2f}  {:>+9.2f}\n",
                        rank_of(layout, cell),
                        to_string(cell.cell),
                        cell.planned.start / kMillisecond,
                        cell.measured.start / kMillisecond,
                        cell.planned.length() / kMillisecond,
                        cell.measured.length() / kMillisecond,
                        cell.late() / kMillisecond);
  }
  if (comparison.cells.size() > limit) {
    text += fmt::format("{} more cells deviate less; --limit shows more\n",
                        comparison.cells.size() - limit);
  }
  return text;
}

nlohmann::ordered_json comparison_json(const Comparison& comparison,
                                       const Measurements& measured,
                                       const Layout& layout,
                                       const TraceHeader& run,
                                       std::size_t limit) {
  Object ranks = Object::array();
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    const std::size_t row = row_of(layout, rank);
    ranks.push_back({{"rank", rank},
                     {"planned", json_of(comparison.rows[row].planned)},
                     {"measured", json_of(comparison.rows[row].measured)},
                     {"outside", json_of(measured.surroundings(row))}});
  }
  Object object{{"steps", measured.steps()},
                {"processors", run.processors},
                {"threads_per_worker", run.threads_per_worker},
                {"planned_by", run.planned_with ? "costs" : "this run"},
                {"planned_bubble_fraction",
                 bubble_fraction(sum(comparison, layout, &RowComparison::planned))},
                {"measured_bubble_fraction",
                 bubble_fraction(sum(comparison, layout, &RowComparison::measured))},
                {"planned_makespan_seconds", comparison.planned_makespan},
                {"measured_makespan_seconds", comparison.measured_makespan},
                {"ranks", std::move(ranks)}};
  if (run.planned_with) {
    object["costs"] = run.planned_with->file;
  }
  Object cells = Object::array();
  for (std::size_t i = 0; i < std::min(limit, comparison.cells.size()); ++i) {
    const CellComparison& cell = comparison.cells[i];
    cells.push_back({{"rank", rank_of(layout, cell)},
                     {"cell", to_string(cell.cell)},
                     {"planned_seconds", {cell.planned.start, cell.planned.end}},
                     {"measured_seconds", {cell.measured.start, cell.measured.end}},
                     {"late_seconds", cell.late()}});
  }
  if (limit > 0) {
    object["cells"] = std::move(cells);
  }
  return object;
}

}  // namespace stagecraft::tools
