#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/json/piper.h"
#include "stagecraft/scheduler/formats/json/piper_words.h"
#include "stagecraft/scheduler/model/placement.h"

namespace stagecraft {
namespace {

using formats::kPasses;
using formats::kPassTag;
using formats::kStageTag;

constexpr std::string_view kMicrobatchWord = "MB";

std::string filter_text(const Task& task) {
  const auto* const pass =
      std::ranges::find(kPasses, task.kind, [](const auto& entry) { return entry.second; });
  return fmt::format(R"({{"{}": {}, "{}": {}, "{}": "{}"}})",
                     kStageTag,
                     task.stage.value,
                     kMicrobatchWord,
                     task.microbatch.value,
                     kPassTag,
                     pass->first);
}

std::string order_text(const Schedule::Row& row) {
  std::string groups;
  for (const Cell& cell : row) {
    std::vector<std::string> filters;
    std::ranges::transform(cell.tasks(), std::back_inserter(filters), filter_text);
    groups += fmt::format("{}[{}]", groups.empty() ? "" : ",\n    ", fmt::join(filters, ", "));
  }
  return fmt::format("  {{\"op\": \"order\", \"filters\": [\n    {}]}}", groups);
}

/// Refuses what Piper's own reader would refuse, apart from single cells.
void require_rows_of_piper(const Schedule& list, const Placement& placement) {
  for (std::size_t r = 0; r < list.rows().size(); ++r) {
    if (list.rows()[r].size() < 2) {
      throw Error(Errc::ScheduleParameter,
                  fmt::format("Piper's order directives hold two cells or more, but row {} has {}; "
                              "write text or JSON",
                              r,
                              list.rows()[r].size()));
    }
    for (const Cell& cell : list.rows()[r]) {
      for (const Task& task : cell.tasks()) {
        if (placement.row(task.stage) != static_cast<int>(r)) {
          throw Error(Errc::ScheduleParameter,
                      fmt::format("Piper places a stage once, but {} is in row {} and other tasks "
                                  "of its stage are not; stagecraft schedule check shows them",
                                  to_string(task),
                                  r));
        }
      }
    }
  }
}

}  // namespace

std::string to_piper(const Schedule& schedule) {
  const Schedule list = schedule.to_list();
  const Placement placement = Placement::of(list, list.stages());
  require_rows_of_piper(list, placement);
  std::vector<std::string> lines{fmt::format(
      R"(  {{"op": "split", "filter": {{}}, "dim_name": "{}", "num_microbatches": {}}})",
      kMicrobatchWord,
      schedule.microbatches())};
  for (int s = 0; s < list.stages(); ++s) {
    if (const auto row = placement.row(StageId(s))) {
      lines.push_back(fmt::format(
          R"(  {{"op": "place", "filter": {{"{}": {}}}, "devices": [{}]}})", kStageTag, s, *row));
    }
  }
  std::ranges::transform(list.rows(), std::back_inserter(lines), order_text);
  return fmt::format("[\n{}\n]\n", fmt::join(lines, ",\n"));
}

}  // namespace stagecraft
