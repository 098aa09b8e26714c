#include "stagecraft/scheduler/formats/json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/cell_text.h"

namespace stagecraft {
namespace {

using Json = nlohmann::json;

constexpr std::array kFields{
    "form", "devices", "stages", "microbatches", "edges", "replicas", "rows"};
/// What no kind is: validate() answers it with V06.
constexpr auto kUnknownKind = static_cast<CellKind>(255);

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Errc::ScheduleParse, what);
}

std::optional<int> small_integer(const Json& value) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.get<std::uint64_t>() > std::numeric_limits<int>::max())) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  const bool fits =
      number >= std::numeric_limits<int>::min() && number <= std::numeric_limits<int>::max();
  return fits ? std::optional<int>(static_cast<int>(number)) : std::nullopt;
}

int count_field(const Json& value, const std::string& name, int largest) {
  const auto number = small_integer(value);
  if (!number || *number < 1 || *number > largest) {
    refuse(fmt::format("field \"{}\" wants a whole number from 1 to {}, got {}",
                       name,
                       largest,
                       formats::quoted(value.dump())));
  }
  return *number;
}

std::vector<StageGraph::Edge> pairs_field(const Json& value, const std::string& name) {
  std::vector<StageGraph::Edge> pairs;
  for (const Json& pair : value.is_array() ? value : Json::array({nullptr})) {
    const bool two = pair.is_array() && pair.size() == 2;
    const auto first = two ? small_integer(pair[0]) : std::nullopt;
    const auto second = two ? small_integer(pair[1]) : std::nullopt;
    if (!first || !second || std::min(*first, *second) < 0 ||
        std::max(*first, *second) >= kMaxStages) {
      refuse(fmt::format("field \"{}\" wants pairs of stages below {}, e.g. [[0, 1]], got {}",
                         name,
                         kMaxStages,
                         formats::quoted(value.dump())));
    }
    pairs.emplace_back(*first, *second);
  }
  return pairs;
}

/// A task without a kind where the entry has another shape: validate() answers it with V03.
Task task_of(const Json& entry) {
  const bool three = entry.is_array() && entry.size() == 3 && entry[2].is_string();
  const auto stage = three ? small_integer(entry[0]) : std::nullopt;
  const auto microbatch = three ? small_integer(entry[1]) : std::nullopt;
  if (!stage || !microbatch) {
    return Task{};
  }
  const auto letters = entry[2].get<std::string>();
  const auto kind = letters.size() == 1 ? formats::kind_of(letters.front()) : std::nullopt;
  const bool update = kind == CellKind::Update;
  return {kind.value_or(kUnknownKind), StageId(*stage), Microbatch(update ? 0 : *microbatch)};
}

Cell cell_of(const Json& entry) {
  if (entry.is_null()) {
    return Cell();
  }
  if (!entry.is_array() || entry.empty() || !entry.front().is_array()) {
    return Cell(task_of(entry));
  }
  std::vector<Task> group;
  for (const Json& member : entry) {
    group.push_back(task_of(member));
  }
  return Cell(std::move(group));
}

std::vector<Schedule::Row> rows_of(const Json& document) {
  if (!document.contains("rows") || !document["rows"].is_array() || document["rows"].empty()) {
    refuse("field \"rows\" wants one list of cells per row, e.g. [[[0, 0, \"F\"], null]]");
  }
  std::vector<Schedule::Row> rows;
  for (const Json& list : document["rows"]) {
    if (!list.is_array()) {
      refuse(fmt::format("row {} of \"rows\" wants a list of cells, got {}",
                         rows.size(),
                         formats::quoted(list.dump())));
    }
    Schedule::Row& row = rows.emplace_back();
    std::ranges::transform(list, std::back_inserter(row), cell_of);
  }
  return rows;
}

Schedule::Headers headers_of(const Json& document, const std::vector<Schedule::Row>& rows) {
  Schedule::Headers headers;
  const auto count = [&](const char* name, int largest) -> std::optional<int> {
    return document.contains(name) ? std::optional<int>(count_field(document[name], name, largest))
                                   : std::nullopt;
  };
  headers.rows = count("devices", kMaxStages);
  headers.stages = count("stages", kMaxStages);
  headers.microbatches = count("microbatches", kMaxMicrobatches);
  if (!document.contains("edges") && !document.contains("replicas")) {
    return headers;
  }
  const auto edges = document.contains("edges") ? pairs_field(document["edges"], "edges")
                                                : std::vector<StageGraph::Edge>{};
  const auto replicas = document.contains("replicas")
                            ? pairs_field(document["replicas"], "replicas")
                            : std::vector<StageGraph::Edge>{};
  int stages = Schedule(Schedule::Form::Array, rows).stages();
  for (const auto* pairs : {&edges, &replicas}) {
    for (const auto& [first, second] : *pairs) {
      stages = std::max({stages, first + 1, second + 1});
    }
  }
  stages = headers.stages.value_or(stages);
  try {
    headers.graph = document.contains("edges") ? StageGraph::from_edges(stages, edges)
                                               : StageGraph::chain(stages);
    headers.graph->set_replica_pairs(replicas);
  } catch (const Error& error) {
    refuse(error.message());
  }
  return headers;
}

Json task_json(const Task& task) {
  return Json::array({task.stage.value, task.microbatch.value, std::string(1, letter(task.kind))});
}

Json cell_json(const Cell& cell) {
  if (cell.idle()) {
    return nullptr;
  }
  if (!cell.is_group()) {
    return task_json(cell.tasks().front());
  }
  Json group = Json::array();
  for (const Task& task : cell.tasks()) {
    group.push_back(task_json(task));
  }
  return group;
}

}  // namespace

Schedule parse_json(std::string_view text) {
  formats::require_size(text);
  Json document;
  try {
    document = Json::parse(text);
  } catch (const Json::exception& error) {
    refuse(fmt::format("this is no JSON: {}", error.what()));
  }
  if (!document.is_object()) {
    refuse("a schedule is a JSON object with a field \"rows\"");
  }
  for (const auto& [name, value] : document.items()) {
    if (std::ranges::find(kFields, name) == kFields.end()) {
      refuse(fmt::format("unknown field {}; there are {}",
                         formats::quoted(name),
                         "form, devices, stages, microbatches, edges, replicas and rows"));
    }
  }
  const Json form = document.value("form", Json("array"));
  if (form != "array" && form != "list") {
    refuse(fmt::format("field \"form\" wants \"array\" or \"list\", got {}",
                       formats::quoted(form.dump())));
  }
  std::vector<Schedule::Row> rows = rows_of(document);
  Schedule::Headers headers = headers_of(document, rows);
  return Schedule(form == "list" ? Schedule::Form::List : Schedule::Form::Array,
                  std::move(rows),
                  std::move(headers));
}

std::string to_json(const Schedule& schedule) {
  const Schedule::Headers& headers = schedule.headers();
  std::string text = fmt::format("{{\n  \"form\": \"{}\",\n",
                                 schedule.form() == Schedule::Form::List ? "list" : "array");
  const std::pair<const char*, const std::optional<int>*> counts[] = {
      {"devices", &headers.rows},
      {"stages", &headers.stages},
      {"microbatches", &headers.microbatches}};
  for (const auto& [name, value] : counts) {
    if (*value) {
      text += fmt::format("  \"{}\": {},\n", name, **value);
    }
  }
  if (headers.graph) {
    text += fmt::format("  \"edges\": {},\n", Json(headers.graph->edges()).dump());
    if (!headers.graph->replica_pairs().empty()) {
      text += fmt::format("  \"replicas\": {},\n", Json(headers.graph->replica_pairs()).dump());
    }
  }
  text += "  \"rows\": [";
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    Json row = Json::array();
    for (const Cell& cell : schedule.rows()[r]) {
      row.push_back(cell_json(cell));
    }
    text += r == 0 ? "\n    " : ",\n    ";
    text += row.dump();
  }
  return text + "\n  ]\n}\n";
}

}  // namespace stagecraft
