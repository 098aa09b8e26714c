#include "stagecraft/scheduler/formats/json.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/cell_text.h"
#include "stagecraft/scheduler/formats/json_reader.h"

namespace stagecraft {
namespace {

using formats::JsonReader;
using formats::quoted;
using Pairs = std::vector<StageGraph::Edge>;

/// What no kind is: validate() answers it with V06.
constexpr auto kUnknownKind = static_cast<CellKind>(255);

/// A letter that is no kind is kept, so that V06 can name it.
CellKind kind_named(const std::string& letters) {
  if (letters.size() != 1 || letters.front() <= ' ' || letters.front() > '~') {
    return kUnknownKind;
  }
  return formats::kind_of(letters.front()).value_or(static_cast<CellKind>(letters.front()));
}

/// Reads one schedule; its fields may come in any order.
class Document {
 public:
  explicit Document(std::string_view text) : json_(text) {}
  Schedule read();

 private:
  template <class T>
  struct Field {
    std::optional<T> value;
    std::size_t offset = 0;  // of the value
  };

  void field(const std::string& name);
  template <class T, class Read>
  void once(Field<T>& field, const std::string& name, Read&& read);
  [[nodiscard]] int count(const std::string& name, int largest);
  [[nodiscard]] Pairs pairs(const std::string& name);
  [[nodiscard]] std::vector<int> numbers(const std::string& name, const char* what, int end);
  [[nodiscard]] Schedule::Form form();
  [[nodiscard]] std::vector<Schedule::Row> rows();
  [[nodiscard]] Cell cell();
  [[nodiscard]] Task task();
  [[nodiscard]] Task task_elements(std::size_t begin);
  void assemble_graph(Schedule::Headers& headers) const;

  JsonReader json_;
  Field<Schedule::Form> form_;
  Field<int> devices_, stages_, microbatches_;
  Field<Pairs> edges_, replicas_;
  Field<std::vector<int>> frozen_, sizes_;
  Field<std::vector<Schedule::Row>> rows_;
};

template <class T, class Read>
void Document::once(Field<T>& field, const std::string& name, Read&& read) {
  if (field.value) {
    json_.refuse(json_.key_offset(), fmt::format("field \"{}\" appears twice; keep one", name));
  }
  field.offset = json_.offset();
  field.value = read();
}

void Document::field(const std::string& name) {
  if (name == "form") {
    once(form_, name, [&] { return form(); });
  } else if (name == "devices") {
    once(devices_, name, [&] { return count(name, kMaxStages); });
  } else if (name == "stages") {
    once(stages_, name, [&] { return count(name, kMaxStages); });
  } else if (name == "microbatches") {
    once(microbatches_, name, [&] { return count(name, kMaxMicrobatches); });
  } else if (name == "edges") {
    once(edges_, name, [&] { return pairs(name); });
  } else if (name == "replicas") {
    once(replicas_, name, [&] { return pairs(name); });
  } else if (name == "frozen") {
    once(frozen_, name, [&] { return numbers(name, "stages", kMaxStages); });
  } else if (name == "sizes") {
    once(sizes_, name, [&] { return numbers(name, "sizes of microbatches", kMaxMicrobatches); });
  } else if (name == "rows") {
    once(rows_, name, [&] { return rows(); });
  } else {
    const std::vector<std::string> known{"form",
                                         "devices",
                                         "stages",
                                         "microbatches",
                                         "edges",
                                         "replicas",
                                         "frozen",
                                         "sizes",
                                         "rows"};
    json_.refuse(json_.key_offset(),
                 fmt::format("unknown field {}; {}there are form, devices, stages, microbatches, "
                             "edges, replicas, frozen, sizes and rows",
                             quoted(name),
                             did_you_mean(name, known)));
  }
}

int Document::count(const std::string& name, int largest) {
  const std::size_t at = json_.offset();
  JsonReader value = json_;
  const auto number = json_.integer();
  if (!number || *number < 1 || *number > largest) {
    json_.refuse(at,
                 fmt::format("field \"{}\" wants a whole number from 1 to {}, got {}",
                             name,
                             largest,
                             quoted(value.skip())));
  }
  return *number;
}

Pairs Document::pairs(const std::string& name) {
  Pairs list;
  const auto wrong = [&](std::size_t at) {
    json_.refuse(
        at,
        fmt::format(
            "field \"{}\" wants pairs of stages below {}, e.g. [[0, 1]]", name, kMaxStages));
  };
  if (json_.next() != JsonReader::Kind::Array) {
    wrong(json_.offset());
  }
  json_.open();
  while (json_.next_element()) {
    const std::size_t at = json_.offset();
    if (json_.next() != JsonReader::Kind::Array) {
      wrong(at);
    }
    json_.open();
    std::vector<int> ends;
    while (json_.next_element()) {
      const int end = json_.integer().value_or(-1);
      if (end < 0 || end >= kMaxStages || ends.size() == 2) {
        wrong(at);
      }
      ends.push_back(end);
    }
    if (ends.size() != 2) {
      wrong(at);
    }
    list.emplace_back(ends[0], ends[1]);
  }
  return list;
}

/// A list of numbers below `end`, which are `what`.
std::vector<int> Document::numbers(const std::string& name, const char* what, int end) {
  std::vector<int> list;
  const auto wrong = [&](std::size_t at) {
    json_.refuse(at, fmt::format("field \"{}\" wants {} below {}, e.g. [0, 1]", name, what, end));
  };
  if (json_.next() != JsonReader::Kind::Array) {
    wrong(json_.offset());
  }
  json_.open();
  while (json_.next_element()) {
    const std::size_t at = json_.offset();
    const int number = json_.integer().value_or(-1);
    if (number < 0 || number >= end) {
      wrong(at);
    }
    list.push_back(number);
  }
  return list;
}

Schedule::Form Document::form() {
  const std::size_t at = json_.offset();
  const auto form = json_.string();
  if (form != "array" && form != "list") {
    json_.refuse(at, "field \"form\" wants \"array\" or \"list\"");
  }
  return form == "list" ? Schedule::Form::List : Schedule::Form::Array;
}

/// A task without a kind where the entry has another shape: validate() answers it with V03.
/// Requires: its array is open and has a first element.
Task Document::task_elements(std::size_t begin) {
  const auto stage = json_.integer();
  std::optional<int> microbatch;
  std::optional<std::string> letters;
  std::size_t elements = 1;
  for (; json_.next_element(); ++elements) {
    if (elements == 1) {
      microbatch = json_.integer();
    } else if (elements == 2) {
      letters = json_.string();
    } else {
      (void)json_.skip();
    }
  }
  if (elements != 3 || !stage || !microbatch || !letters) {
    return {};
  }
  if (*stage >= kMaxStages || *microbatch >= kMaxMicrobatches) {
    json_.refuse(begin,
                 fmt::format("the cell [{}, {}, ...] is beyond what a schedule may name: stages go "
                             "up to {}, microbatches up to {}; correct the number",
                             *stage,
                             *microbatch,
                             kMaxStages - 1,
                             kMaxMicrobatches - 1));
  }
  const CellKind kind = kind_named(*letters);
  const bool update = kind == CellKind::Update;
  return {kind, StageId(*stage), Microbatch(update ? 0 : *microbatch)};
}

Task Document::task() {
  const std::size_t begin = json_.offset();
  if (json_.next() != JsonReader::Kind::Array) {
    (void)json_.skip();
    return {};
  }
  json_.open();
  return json_.next_element() ? task_elements(begin) : Task{};
}

Cell Document::cell() {
  const std::size_t begin = json_.offset();
  const JsonReader::Kind kind = json_.next();
  if (kind != JsonReader::Kind::Array) {
    (void)json_.skip();
    return kind == JsonReader::Kind::Null ? Cell() : Cell(Task{});
  }
  json_.open();
  if (!json_.next_element()) {
    return Cell(Task{});
  }
  if (json_.next() != JsonReader::Kind::Array) {
    return Cell(task_elements(begin));
  }
  std::vector<Task> group;
  do {
    group.push_back(task());
  } while (json_.next_element());
  return Cell(std::move(group));
}

std::vector<Schedule::Row> Document::rows() {
  std::vector<Schedule::Row> list;
  std::size_t cells = 0;
  const std::size_t at = json_.offset();
  if (json_.next() == JsonReader::Kind::Array) {
    json_.open();
    while (json_.next_element()) {
      if (json_.next() != JsonReader::Kind::Array) {
        json_.refuse(json_.offset(),
                     fmt::format("row {} of \"rows\" wants a list of cells, e.g. [[0, 0, \"F\"]]",
                                 list.size()));
      }
      if (!formats::has_room(list.size(), cells)) {
        json_.refuse(json_.offset(), formats::kNoRoom);
      }
      json_.open();
      Schedule::Row& row = list.emplace_back();
      while (json_.next_element()) {
        if (!formats::has_room(0, ++cells)) {
          json_.refuse(json_.offset(), formats::kNoRoom);
        }
        row.push_back(cell());
      }
    }
  }
  if (list.empty()) {
    json_.refuse(at,
                 "field \"rows\" wants one list of cells per row, e.g. [[[0, 0, \"F\"], null]]");
  }
  return list;
}

void Document::assemble_graph(Schedule::Headers& headers) const {
  if (!edges_.value && !replicas_.value && !frozen_.value && !sizes_.value) {
    return;
  }
  int stages = Schedule(Schedule::Form::Array, *rows_.value).stages();
  for (const auto* field : {&edges_, &replicas_}) {
    for (const auto& [first, second] : field->value.value_or(Pairs{})) {
      stages = std::max({stages, first + 1, second + 1});
    }
  }
  stages = headers.stages.value_or(stages);
  std::size_t at = edges_.offset;
  try {
    headers.graph =
        edges_.value ? StageGraph::from_edges(stages, *edges_.value) : StageGraph::chain(stages);
    at = replicas_.offset;
    headers.graph->set_replica_pairs(replicas_.value.value_or(Pairs{}));
    at = frozen_.offset;
    headers.graph->freeze(frozen_.value.value_or(std::vector<int>{}));
    at = sizes_.offset;
    if (sizes_.value) {
      headers.graph->set_microbatch_sizes(*sizes_.value);
    }
  } catch (const Error& error) {
    json_.refuse(at, error.message());
  }
}

Schedule Document::read() {
  if (json_.next() != JsonReader::Kind::Object) {
    json_.refuse(json_.offset(), "a schedule is a JSON object with a field \"rows\"");
  }
  const std::size_t begin = json_.offset();
  json_.open();
  while (const auto name = json_.next_key()) {
    field(*name);
  }
  json_.finish();
  if (!rows_.value) {
    json_.refuse(begin, "the object has no field \"rows\"; it holds one list of cells per row");
  }
  Schedule::Headers headers{
      .rows = devices_.value, .stages = stages_.value, .microbatches = microbatches_.value};
  assemble_graph(headers);
  return Schedule(
      form_.value.value_or(Schedule::Form::Array), std::move(*rows_.value), std::move(headers));
}

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

std::string pairs_text(const Pairs& pairs) {
  std::string text;
  for (const auto& [first, second] : pairs) {
    text += fmt::format("{}[{},{}]", text.empty() ? "" : ",", first, second);
  }
  return '[' + text + ']';
}

}  // namespace

Schedule parse_json(std::string_view text) {
  formats::require_size(text);
  return Document(text).read();
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
