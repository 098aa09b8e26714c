#include "stagecraft/tools/schedule/report/verdict.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/place_text.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/rules/repair/mistyped.h"
#include "stagecraft/scheduler/rules/repair/wrong_graph.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kCyclesShown = 3;
constexpr std::size_t kStepsShown = 40;

/// Returns one line per task. The first task waits for the last, and each other one for the task
/// before it, for its result or for its turn in the row.
std::string cycle_text(const Schedule& schedule, const Violation& v) {
  std::string text = fmt::format(
      "\n{}: {} that wait for each other\n", v.rule, count_text(v.cycle.size(), "task"));
  for (std::size_t i = 0; i < v.cells.size(); ++i) {
    if (i == kStepsShown) {
      return text + fmt::format("  ... and {} more\n", v.cells.size() - i);
    }
    const std::size_t before = i == 0 ? v.cells.size() - 1 : i - 1;
    const bool in_row =
        v.cells[before].first == v.cells[i].first && v.cells[before].second < v.cells[i].second;
    text += fmt::format("  {} ({}) {} {}\n",
                        to_string(v.cycle[i]),
                        place_text(schedule, v.cells[i].first, v.cells[i].second),
                        in_row ? "comes after" : "waits for",
                        to_string(v.cycle[before]));
  }
  return text;
}

}  // namespace

std::vector<Violation> violations_of(const ScheduleFile& file,
                                     std::optional<MemoryModel> memory,
                                     Sharing sharing) {
  const ValidateOptions options{
      .memory = std::move(memory), .sharing = sharing, .communication = file.communication};
  std::vector<Violation> found = validate(file.schedule, file.graph, options);
  const bool array = file.schedule.form() == Schedule::Form::Array;
  if (file.chain_assumed && array && !found.empty() && file.communication.empty()) {
    if (auto wrong_graph = find_wrong_graph(file.schedule)) {
      return {std::move(*wrong_graph)};
    }
  }
  return report_mistyped(std::move(found), file.schedule, file.graph, options);
}

void require_valid(const ScheduleFile& file) {
  const std::vector<Violation> violations = violations_of(file);
  if (!violations.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("{} has {}, the first: {}; stagecraft schedule check shows all",
                            file.name,
                            count_text(violations.size(), "violation"),
                            to_string(violations.front())));
  }
}

std::string size_text(const ScheduleFile& file) {
  std::string text = fmt::format("{}, {}",
                                 count_text(file.schedule.rows().size(), "device"),
                                 count_text(file.graph.size(), "stage"));
  if (file.graph.replicas() > 1) {
    text += fmt::format(" in {} replicas", file.graph.replicas());
  }
  text += ", " + count_text(file.schedule.microbatches(), "microbatch");
  if (const std::vector<int> sizes = file.graph.microbatch_sizes(); !sizes.empty()) {
    text += fmt::format(" of sizes {}", fmt::join(sizes, ", "));
  }
  if (!file.communication.empty()) {
    text += fmt::format(", {} of communication", count_text(file.communication.size(), "action"));
  }
  return text;
}

std::string report_text(const ScheduleFile& file,
                        const std::vector<Violation>& violations,
                        const Console& console) {
  std::string text = render(file.schedule,
                            violations,
                            {.width = console.width, .color = console.color, .graph = &file.graph});
  std::size_t cycles = 0;
  for (const Violation& v : violations) {
    // The message of V35 lists transfers, which say more than the tasks that made the values.
    if (v.rule == "V29" && cycles++ < kCyclesShown) {
      text += cycle_text(file.schedule, v);
    }
  }
  const auto mistyped =
      std::ranges::find_if(violations, [](const Violation& v) { return v.mistyped.has_value(); });
  if (mistyped != violations.end()) {
    text += fmt::format("\nrepair: write {}; stagecraft schedule fix does it\n",
                        to_string(*mistyped->mistyped, file.schedule));
  }
  if (const auto exchange = proposed_exchange(violations)) {
    text += fmt::format("\nrepair: exchange {}; stagecraft schedule fix does it\n",
                        to_string(*exchange, file.schedule));
  }
  return text;
}

std::optional<Exchange> proposed_exchange(const std::vector<Violation>& violations) {
  const auto found =
      std::ranges::find_if(violations, [](const Violation& v) { return v.repair.has_value(); });
  return found == violations.end() ? std::nullopt : found->repair;
}

}  // namespace stagecraft::tools
