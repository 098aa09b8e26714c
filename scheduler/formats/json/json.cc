#include "stagecraft/scheduler/formats/json/json.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/json/json_reader.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"

namespace stagecraft {
namespace {

using formats::JsonReader;
using formats::quoted;
using Pairs = std::vector<StageGraph::Edge>;

/// No kind has this value; validate() reports it as V06.
constexpr auto kUnknownKind = static_cast<CellKind>(255);

/// Keeps a letter that is no kind, so that V06 can name it.
CellKind kind_named(const std::string& letters) {
  if (letters.size() != 1 || letters.front() <= ' ' || letters.front() > '~') {
    return kUnknownKind;
  }
  return formats::kind_of(letters.front()).value_or(static_cast<CellKind>(letters.front()));
}

constexpr std::string_view kRows = "one list of cells per row, e.g. [[[0, 0, \"F\"], null]]";

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
  void note(std::size_t at, std::string_view what);
  template <class T, class Read>
  void once(Field<T>& field, const std::string& name, Read&& read);
  [[nodiscard]] int count(const std::string& name, int largest);
  [[nodiscard]] bool opens(const std::string& name, std::string_view wanted);
  [[nodiscard]] Pairs pairs(const std::string& name);
  [[nodiscard]] std::optional<StageGraph::Edge> pair();
  [[nodiscard]] std::vector<int> numbers(const std::string& name, const char* what, int end);
  [[nodiscard]] Schedule::Form form();
  [[nodiscard]] std::vector<Schedule::Row> rows();
  [[nodiscard]] Cell cell();
  [[nodiscard]] Task task();
  [[nodiscard]] Task task_elements(std::size_t begin);
  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::vector<std::vector<Rank>> places();
  void assemble_graph(Schedule::Headers& headers);

  JsonReader json_;
  formats::FaultList faults_;
  Field<Schedule::Form> form_;
  Field<int> devices_, stages_, microbatches_;
  Field<Pairs> edges_, replicas_;
  Field<std::vector<int>> frozen_, sizes_;
  Field<std::vector<std::vector<Rank>>> places_;
  Field<std::vector<Schedule::Row>> rows_;
  std::size_t row_ = 0, column_ = 0;   // of the current cell
  std::optional<std::size_t> member_;  // of its overlap group
};

/// Notes a fault. Reading continues after it and leaves it out.
void Document::note(std::size_t at, std::string_view what) {
  faults_.note(faults_.full() ? std::string() : formats::located(json_.location(at), what));
}

template <class T, class Read>
void Document::once(Field<T>& field, const std::string& name, Read&& read) {
  if (field.value) {
    note(json_.key_offset(), fmt::format("field \"{}\" appears twice; keep one", name));
    (void)json_.skip();
    return;
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
  } else if (name == "place") {
    once(places_, name, [&] { return places(); });
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
                                         "place",
                                         "rows"};
    note(json_.key_offset(),
         fmt::format("unknown field {}; {}there are form, devices, stages, microbatches, "
                     "edges, replicas, frozen, sizes, place and rows",
                     quoted(name),
                     did_you_mean(name, known)));
    (void)json_.skip();
  }
}

int Document::count(const std::string& name, int largest) {
  const std::size_t at = json_.offset();
  JsonReader value = json_;
  const auto number = json_.integer();
  if (!number || *number < 1 || *number > largest) {
    note(at,
         fmt::format("field \"{}\" needs a whole number from 1 to {}, got {}",
                     name,
                     largest,
                     quoted(value.skip())));
    return 1;
  }
  return *number;
}

/// Opens a list and returns true; skips any other value.
bool Document::opens(const std::string& name, std::string_view wanted) {
  if (json_.next() != JsonReader::Kind::Array) {
    note(json_.offset(), fmt::format("field \"{}\" needs {}", name, wanted));
    (void)json_.skip();
    return false;
  }
  json_.open();
  return true;
}

Pairs Document::pairs(const std::string& name) {
  Pairs list;
  if (!opens(name, fmt::format("pairs of stages below {}, e.g. [[0, 1]]", kMaxStages))) {
    return list;
  }
  while (json_.next_element()) {
    const std::size_t at = json_.offset();
    const auto pair = this->pair();
    if (!pair) {
      note(at,
           fmt::format(
               "{}[{}] needs two stages below {}, e.g. [0, 1]", name, list.size(), kMaxStages));
    }
    list.push_back(pair.value_or(StageGraph::Edge{}));
  }
  return list;
}

/// Returns nothing if the next value is no pair of stages.
std::optional<StageGraph::Edge> Document::pair() {
  if (json_.next() != JsonReader::Kind::Array) {
    (void)json_.skip();
    return std::nullopt;
  }
  json_.open();
  std::vector<int> ends;
  bool stages = true;
  while (json_.next_element()) {
    const int end = json_.integer().value_or(-1);
    stages = stages && end >= 0 && end < kMaxStages && ends.size() < 2;
    if (stages) {
      ends.push_back(end);
    }
  }
  return stages && ends.size() == 2 ? std::optional(StageGraph::Edge(ends[0], ends[1]))
                                    : std::nullopt;
}

/// Returns a list of numbers below `end`; `what` names them.
std::vector<int> Document::numbers(const std::string& name, const char* what, int end) {
  std::vector<int> list;
  if (!opens(name, fmt::format("{} below {}, e.g. [0, 1]", what, end))) {
    return list;
  }
  while (json_.next_element()) {
    const std::size_t at = json_.offset();
    const int number = json_.integer().value_or(-1);
    if (number < 0 || number >= end) {
      note(at, fmt::format("{}[{}] needs a whole number below {}", name, list.size(), end));
    }
    list.push_back(number);
  }
  return list;
}

std::vector<std::vector<Rank>> Document::places() {
  std::vector<std::vector<Rank>> places;
  if (!opens("place", "the ranks of each row, e.g. [[0, 2], [1, 3]]")) {
    return places;
  }
  while (json_.next_element()) {
    const std::string row = fmt::format("place[{}]", places.size());
    std::vector<Rank>& ranks = places.emplace_back();
    for (const int rank : numbers(row, "ranks", kMaxRanks)) {
      ranks.emplace_back(rank);
    }
    if (places.size() > kMaxStages) {
      json_.refuse(json_.offset(), formats::kNoRoom);
    }
  }
  return places;
}

Schedule::Form Document::form() {
  const std::size_t at = json_.offset();
  const auto form = json_.string();
  if (form != "array" && form != "list") {
    note(at, "field \"form\" needs \"array\" or \"list\"");
  }
  return form == "list" ? Schedule::Form::List : Schedule::Form::Array;
}

/// Returns a task without a kind if the entry has another shape; validate() reports it as V03.
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
    note(begin,
         fmt::format("{}: [{}, {}, ...] names a stage or a microbatch that is too large; stages go "
                     "up to {}, microbatches up to {}, so correct the number",
                     place(),
                     *stage,
                     *microbatch,
                     kMaxStages - 1,
                     kMaxMicrobatches - 1));
    return {};
  }
  const CellKind kind = kind_named(*letters);
  const bool update = kind == CellKind::Update;
  return {kind, StageId(*stage), Microbatch(update ? 0 : *microbatch)};
}

/// Returns the path of the current cell.
std::string Document::place() const {
  const std::string cell = fmt::format("rows[{}][{}]", row_, column_);
  return member_ ? fmt::format("{}[{}]", cell, *member_) : cell;
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
    member_ = group.size();
    group.push_back(task());
  } while (json_.next_element());
  member_.reset();
  return Cell(std::move(group));
}

std::vector<Schedule::Row> Document::rows() {
  std::vector<Schedule::Row> list;
  std::size_t cells = 0;
  const std::size_t at = json_.offset();
  if (!opens("rows", kRows)) {
    return list;
  }
  while (json_.next_element()) {
    if (!formats::has_room(list.size(), cells)) {
      json_.refuse(json_.offset(), formats::kNoRoom);
    }
    row_ = list.size();
    Schedule::Row& row = list.emplace_back();
    if (json_.next() != JsonReader::Kind::Array) {
      note(json_.offset(),
           fmt::format("rows[{}] needs a list of cells, e.g. [[0, 0, \"F\"]]", row_));
      (void)json_.skip();
      continue;
    }
    json_.open();
    while (json_.next_element()) {
      if (!formats::has_room(0, ++cells)) {
        json_.refuse(json_.offset(), formats::kNoRoom);
      }
      column_ = row.size();
      row.push_back(cell());
    }
  }
  if (list.empty()) {
    note(at, fmt::format("field \"rows\" needs {}", kRows));
  }
  return list;
}

void Document::assemble_graph(Schedule::Headers& headers) {
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
  const auto attempt = [&](std::size_t at, auto&& step) {
    try {
      step();
    } catch (const Error& error) {
      note(at, error.message());
    }
  };
  StageGraph& graph = headers.graph.emplace(StageGraph::chain(stages));
  attempt(edges_.offset,
          [&] { graph = edges_.value ? StageGraph::from_edges(stages, *edges_.value) : graph; });
  attempt(replicas_.offset, [&] { graph.set_replica_pairs(replicas_.value.value_or(Pairs{})); });
  attempt(frozen_.offset, [&] { graph.freeze(frozen_.value.value_or(std::vector<int>{})); });
  if (sizes_.value) {
    attempt(sizes_.offset, [&] { graph.set_microbatch_sizes(*sizes_.value); });
  }
  faults_.refuse_if_any();
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
    note(begin, "the object has no field \"rows\"; it holds one list of cells per row");
  }
  faults_.refuse_if_any();
  Schedule::Headers headers{.rows = devices_.value,
                            .stages = stages_.value,
                            .microbatches = microbatches_.value,
                            .graph = std::nullopt,
                            .places = places_.value.value_or(std::vector<std::vector<Rank>>())};
  assemble_graph(headers);
  return Schedule(
      form_.value.value_or(Schedule::Form::Array), std::move(*rows_.value), std::move(headers));
}

}  // namespace

bool looks_like_json(std::string_view rows) {
  return rows.starts_with('{') || rows.starts_with('[');
}

Schedule parse_json(std::string_view text) {
  formats::require_size(text);
  return Document(text).read();
}

}  // namespace stagecraft
