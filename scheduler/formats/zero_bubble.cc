#include "stagecraft/scheduler/formats/zero_bubble.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"
#include "stagecraft/scheduler/formats/parts/python_lists.h"

namespace stagecraft {
namespace {

using formats::PythonCall;
using formats::PythonItem;
using formats::PythonLists;
using formats::quoted;

constexpr std::array<std::pair<std::string_view, CellKind>, 4> kTypes{
    {{"F", CellKind::Forward},
     {"B", CellKind::BackwardInput},
     {"W", CellKind::BackwardWeight},
     {"BW", CellKind::Backward}}};

CellKind kind_of(const PythonLists& lists, const PythonCall& call) {
  const std::string_view type = call.argument("type").value_or("");
  const std::string_view name = type.substr(type.rfind('.') + 1);
  const auto* const found =
      std::ranges::find(kTypes, name, [](const auto& entry) { return entry.first; });
  if (found == kTypes.end()) {
    lists.refuse(call.offset,
                 fmt::format("a ScheduledNode needs type= F, B, W or BW, found {}; print the list "
                             "before run_schedule_passes() adds communication to it",
                             type.empty() ? "none" : quoted(type)));
  }
  return found->second;
}

/// Refuses a node that states something a schedule cannot express.
void require_plain(const PythonLists& lists, const PythonCall& call) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPlain{
      {{"seq_split_idx", "0"}, {"need_recompute", "False"}, {"should_offload", "False"}}};
  for (const auto& [name, plain] : kPlain) {
    const std::string_view found = call.argument(name).value_or(plain);
    if (found != plain) {
      lists.refuse(call.offset,
                   fmt::format("a schedule has no word for {}={}; only nodes with {} are read",
                               name,
                               quoted(found),
                               plain));
    }
  }
}

Task task_of(const PythonLists& lists, const PythonItem& item, std::size_t row) {
  if (item.tuple || item.calls.empty()) {
    lists.refuse(item.offset, "a row holds ScheduledNode(...) only");
  }
  const PythonCall& call = item.calls.front();
  if (call.name != "ScheduledNode") {
    lists.refuse(
        call.offset,
        fmt::format("{} is not a node of the zero-bubble scheduler; a row holds ScheduledNode(...)",
                    quoted(call.name)));
  }
  const CellKind kind = kind_of(lists, call);
  const int stage = lists.number(call, "stage", kMaxStages);
  if (static_cast<std::size_t>(stage) != row) {
    lists.refuse(
        call.offset,
        fmt::format(
            "row {} holds a node with stage={}; row r holds the nodes of stage r", row, stage));
  }
  require_plain(lists, call);
  return {kind,
          StageId(lists.number(call, "layer_group_idx", kMaxStages)),
          Microbatch(lists.number(call, "microbatch", kMaxMicrobatches))};
}

}  // namespace

bool looks_like_zero_bubble(std::string_view rows) {
  return rows.starts_with('[') && rows.find("ScheduledNode(") != std::string_view::npos;
}

Schedule parse_zero_bubble(std::string_view text) {
  PythonLists lists(text);
  formats::FaultList faults;
  std::vector<Schedule::Row> rows;
  std::size_t cells = 0;
  const auto require_room = [&](std::size_t offset) {
    if (!formats::has_room(rows.size(), cells)) {
      lists.refuse(offset, formats::kNoRoom);
    }
  };
  while (lists.next_row()) {
    require_room(lists.offset());
    rows.emplace_back();
    while (const auto item = lists.next_item()) {
      ++cells;
      require_room(item->offset);
      faults.attempt([&] { rows.back().emplace_back(task_of(lists, *item, rows.size() - 1)); });
    }
  }
  faults.refuse_if_any();
  if (cells == 0) {
    throw Error(Errc::ScheduleParse,
                "the list holds no ScheduledNode; print what create_schedule() returns");
  }
  return {Schedule::Form::List, std::move(rows)};
}

std::string to_zero_bubble(const Schedule& schedule) {
  const Schedule list = schedule.to_list();
  std::string text;
  for (std::size_t r = 0; r < list.rows().size(); ++r) {
    std::set<StageId> chunks;  // a row numbers its chunks by its stages, as in every placement
    for (const Cell& cell : list.rows()[r]) {
      chunks.insert(cell.tasks().front().stage);
    }
    std::string nodes;
    for (const Cell& cell : list.rows()[r]) {
      const Task& task = cell.tasks().front();
      const auto* const type =
          std::ranges::find(kTypes, task.kind, [](const auto& entry) { return entry.second; });
      nodes += fmt::format(
          "{}ScheduledNode(type={}, stage={}, microbatch={}, chunk={}, layer_group_idx={})",
          nodes.empty() ? "" : ", ",
          type->first,
          r,
          task.microbatch.value,
          std::distance(chunks.begin(), chunks.find(task.stage)),
          task.stage.value);
    }
    text += fmt::format("{}[{}]", text.empty() ? "[" : ",\n ", nodes);
  }
  return text + "]\n";
}

}  // namespace stagecraft
