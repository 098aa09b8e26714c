#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/formats/json/json.h"

namespace stagecraft {
namespace {

void append_task(std::string& text, const Task& task) {
  fmt::format_to(std::back_inserter(text),
                 "[{},{},\"{}\"]",
                 task.stage.value,
                 task.microbatch.value,
                 letter(task.kind));
}

void append_cell(std::string& text, const Cell& cell) {
  if (cell.idle()) {
    text += "null";
    return;
  }
  if (!cell.is_group()) {
    append_task(text, cell.tasks().front());
    return;
  }
  char separator = '[';
  for (const Task& task : cell.tasks()) {
    text += separator;
    append_task(text, task);
    separator = ',';
  }
  text += ']';
}

std::string pairs_text(const std::vector<StageGraph::Edge>& pairs) {
  std::string text;
  for (const auto& [first, second] : pairs) {
    text += fmt::format("{}[{},{}]", text.empty() ? "" : ",", first, second);
  }
  return '[' + text + ']';
}

std::string places_text(const std::vector<std::vector<Rank>>& places) {
  std::string text;
  for (const std::vector<Rank>& ranks : places) {
    std::vector<int> numbers;
    for (const Rank rank : ranks) {
      numbers.push_back(rank.value);
    }
    text += fmt::format("{}[{}]", text.empty() ? "" : ",", fmt::join(numbers, ","));
  }
  return '[' + text + ']';
}

}  // namespace

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
    text += fmt::format("  \"edges\": {},\n", pairs_text(headers.graph->edges()));
    if (!headers.graph->replica_pairs().empty()) {
      text += fmt::format("  \"replicas\": {},\n", pairs_text(headers.graph->replica_pairs()));
    }
    if (const std::vector<int> frozen = headers.graph->frozen(); !frozen.empty()) {
      text += fmt::format("  \"frozen\": [{}],\n", fmt::join(frozen, ","));
    }
    if (const std::vector<int> sizes = headers.graph->microbatch_sizes(); !sizes.empty()) {
      text += fmt::format("  \"sizes\": [{}],\n", fmt::join(sizes, ","));
    }
  }
  if (!headers.places.empty()) {
    text += fmt::format("  \"place\": {},\n", places_text(headers.places));
  }
  text += "  \"rows\": [";
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    text += r == 0 ? "\n    [" : ",\n    [";
    bool first = true;
    for (const Cell& cell : schedule.rows()[r]) {
      text += first ? "" : ",";
      first = false;
      append_cell(text, cell);
    }
    text += ']';
  }
  return text + "\n  ]\n}\n";
}

}  // namespace stagecraft
