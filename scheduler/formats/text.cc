#include "stagecraft/scheduler/formats/text.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"

namespace stagecraft {
namespace {

using formats::fail;
using formats::Location;
using formats::quoted;
using formats::trim;
using formats::whole_number;

constexpr std::string_view kBlanks = " \t\r";

/// Parses pairs such as "0-1,1-2" or "0=4,1=5".
std::vector<StageGraph::Edge> parse_pairs(std::string_view text,
                                          char joint,
                                          std::string_view what) {
  std::vector<StageGraph::Edge> pairs;
  while (!trim(text).empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    const std::size_t middle = part.find(joint);
    const auto first = whole_number(part.substr(0, middle));
    const auto second =
        middle == std::string_view::npos ? std::nullopt : whole_number(part.substr(middle + 1));
    if (!first || !second || std::max(*first, *second) >= kMaxStages) {
      throw Error(
          Errc::ScheduleParse,
          fmt::format(
              "{} is not {}: expected two stage numbers below {} joined by '{}', e.g. 0{}1,1{}2",
              quoted(part),
              what,
              kMaxStages,
              joint,
              joint,
              joint));
    }
    pairs.emplace_back(*first, *second);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return pairs;
}

/// Parses numbers such as "0,1", each a `what` below `end`.
std::vector<int> parse_numbers(std::string_view text, std::string_view what, int end) {
  std::vector<int> numbers;
  do {
    const std::size_t comma = text.find(',');
    const std::string_view part = trim(text.substr(0, comma));
    const auto number = whole_number(part);
    if (!number || *number >= end) {
      throw Error(Errc::ScheduleParse,
                  fmt::format("{} is not {}: expected numbers below {} joined by ',', e.g. 0,1",
                              quoted(part),
                              what,
                              end));
    }
    numbers.push_back(*number);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  } while (!text.empty());
  return numbers;
}

/// Reads "0=0,2 1=1,3": the ranks of each row.
std::vector<std::vector<Rank>> parse_places(std::string_view text) {
  std::vector<std::vector<Rank>> places;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find_first_of(kBlanks));
    const std::size_t equals = part.find('=');
    const auto row = whole_number(part.substr(0, equals));
    if (!row || *row >= kMaxStages || equals == std::string_view::npos) {
      throw Error(Errc::ScheduleParse,
                  fmt::format("{} names no row with its ranks: write ROW=RANK,RANK, e.g. 0=0,2",
                              quoted(part)));
    }
    const auto index = static_cast<std::size_t>(*row);
    places.resize(std::max(places.size(), index + 1));
    if (!places[index].empty()) {
      throw Error(Errc::ScheduleParse, fmt::format("row {} is placed twice; keep one", *row));
    }
    for (const int rank : parse_numbers(part.substr(equals + 1), "a rank", kMaxRanks)) {
      places[index].emplace_back(rank);
    }
    text = trim(text.substr(part.size()));
  }
  return places;
}

/// Reads line by line: headers first, then rows.
class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}
  Schedule run();

 private:
  void header(std::string_view line, Location at);
  void row(std::string_view line);
  void assemble_graph();

  std::string_view rest_;
  std::size_t line_ = 0;
  std::size_t cells_ = 0;
  std::optional<Schedule::Form> form_;
  Schedule::Headers headers_;
  std::optional<std::vector<StageGraph::Edge>> edges_;
  std::optional<std::vector<StageGraph::Edge>> replicas_;
  std::optional<std::vector<int>> frozen_;
  std::optional<std::vector<int>> sizes_;
  std::optional<std::vector<std::vector<Rank>>> places_;
  std::size_t graph_line_ = 0;
  std::vector<Schedule::Row> rows_;
  formats::FaultList faults_;
};

template <class T>
void set_once(std::optional<T>& field, T value, std::string_view name, Location at) {
  if (field) {
    fail(at, fmt::format("header {} appears twice; keep one", name));
  }
  field = std::move(value);
}

int header_number(std::string_view name, std::string_view value, int largest, Location at) {
  const auto number = whole_number(value);
  if (!number || *number < 1 || *number > largest) {
    fail(
        at,
        fmt::format("header {} needs a number from 1 to {}, got {}", name, largest, quoted(value)));
  }
  return *number;
}

void Parser::header(std::string_view line, Location at) {
  const std::size_t space = line.find_first_of(kBlanks);
  const std::string_view name = line.substr(0, space);
  const std::string_view value =
      space == std::string_view::npos ? std::string_view{} : trim(line.substr(space));
  if (!rows_.empty()) {
    fail(at, fmt::format("header {} comes after the first row; move it above", quoted(name)));
  }
  if (name == "@form") {
    if (value != "array" && value != "list") {
      fail(at, fmt::format("header @form needs array or list, got {}", quoted(value)));
    }
    set_once(form_, value == "list" ? Schedule::Form::List : Schedule::Form::Array, name, at);
  } else if (name == "@rows") {
    set_once(headers_.rows, header_number(name, value, kMaxStages, at), name, at);
  } else if (name == "@stages") {
    set_once(headers_.stages, header_number(name, value, kMaxStages, at), name, at);
  } else if (name == "@microbatches") {
    set_once(headers_.microbatches, header_number(name, value, kMaxMicrobatches, at), name, at);
  } else if (name == "@edges" || name == "@replicas") {
    const bool edges = name == "@edges";
    graph_line_ = at.line;
    try {
      set_once(edges ? edges_ : replicas_,
               parse_pairs(value, edges ? '-' : '=', edges ? "an edge" : "a replica pair"),
               name,
               at);
    } catch (const Error& error) {
      fail(at, error.message());
    }
  } else if (name == "@frozen" || name == "@sizes") {
    const bool frozen = name == "@frozen";
    graph_line_ = at.line;
    try {
      set_once(frozen ? frozen_ : sizes_,
               frozen ? parse_numbers(value, "a stage", kMaxStages)
                      : parse_numbers(value, "a size of microbatches", kMaxMicrobatches),
               name,
               at);
    } catch (const Error& error) {
      fail(at, error.message());
    }
  } else if (name == "@place") {
    try {
      set_once(places_, parse_places(value), name, at);
    } catch (const Error& error) {
      fail(at, error.message());
    }
  } else {
    const std::vector<std::string> known{"@form",
                                         "@rows",
                                         "@stages",
                                         "@microbatches",
                                         "@edges",
                                         "@replicas",
                                         "@frozen",
                                         "@sizes",
                                         "@place"};
    fail(at,
         fmt::format("unknown header {}; {}there are @form, @rows, @stages, @microbatches, @edges, "
                     "@replicas, @frozen, @sizes and @place",
                     quoted(name),
                     did_you_mean(name, known)));
  }
}

void Parser::row(std::string_view line) {
  Schedule::Row cells;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(kBlanks, at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    if (!formats::has_room(rows_.size(), ++cells_)) {
      fail({line_, at + 1}, formats::kNoRoom);
    }
    try {
      cells.push_back(
          formats::parse_cell(line.substr(at, end - at), rows_.size(), {line_, at + 1}));
    } catch (const Error& error) {
      faults_.note(error.message());
      cells.emplace_back();
    }
    at = end;
  }
  rows_.push_back(std::move(cells));
}

void Parser::assemble_graph() {
  if (!edges_ && !replicas_ && !frozen_ && !sizes_) {
    return;
  }
  int stages = Schedule(Schedule::Form::Array, rows_).stages();
  for (const auto* pairs : {&edges_, &replicas_}) {
    if (*pairs) {
      for (const auto& [first, second] : **pairs) {
        stages = std::max({stages, first + 1, second + 1});
      }
    }
  }
  stages = headers_.stages.value_or(stages);
  try {
    StageGraph graph = edges_ ? StageGraph::from_edges(stages, *edges_) : StageGraph::chain(stages);
    if (replicas_) {
      graph.set_replica_pairs(*replicas_);
    }
    graph.freeze(frozen_.value_or(std::vector<int>{}));
    if (sizes_) {
      graph.set_microbatch_sizes(*sizes_);
    }
    headers_.graph = std::move(graph);
  } catch (const Error& error) {
    fail({graph_line_, 1}, error.message());
  }
}

Schedule Parser::run() {
  formats::require_size(rest_);
  while (!rest_.empty()) {
    ++line_;
    const std::size_t newline = rest_.find('\n');
    const std::string_view whole = rest_.substr(0, newline);
    rest_ = newline == std::string_view::npos ? std::string_view{} : rest_.substr(newline + 1);
    const std::string_view line = whole.substr(0, whole.find('#'));
    const std::string_view content = trim(line);
    if (content.empty()) {
      continue;
    }
    if (content.front() == '@') {
      faults_.attempt([&] {
        header(content, {line_, static_cast<std::size_t>(content.data() - whole.data()) + 1});
      });
    } else {
      row(line);
    }
  }
  if (rows_.empty()) {
    faults_.refuse_if_any();
    throw Error(Errc::ScheduleParse,
                "the text has no row; write one line per row, e.g. \"0F0 0B0\"");
  }
  faults_.refuse_if_any();
  assemble_graph();
  headers_.places = std::move(places_).value_or(std::vector<std::vector<Rank>>());
  return Schedule(form_.value_or(Schedule::Form::Array), std::move(rows_), std::move(headers_));
}

std::string pairs_text(const std::vector<StageGraph::Edge>& pairs, char joint) {
  std::string text;
  for (const auto& [first, second] : pairs) {
    text += fmt::format("{}{}{}{}", text.empty() ? "" : ",", first, joint, second);
  }
  return text;
}

/// Returns the largest stage that the text would name, plus one.
int stages_named(const Schedule& schedule, const StageGraph& graph) {
  int stages = Schedule(schedule.form(), schedule.rows()).stages();
  for (const auto& pairs : {graph.edges(), graph.replica_pairs()}) {
    for (const auto& [first, second] : pairs) {
      stages = std::max({stages, first + 1, second + 1});
    }
  }
  return stages;
}

/// Returns nothing for a reader's default: one chain over the stages seen.
std::string graph_text(const Schedule& schedule, const StageGraph& graph) {
  std::string text;
  const int seen =
      schedule.headers().stages.value_or(Schedule(schedule.form(), schedule.rows()).stages());
  if (!schedule.headers().stages && graph.size() != stages_named(schedule, graph)) {
    text += fmt::format("@stages {}\n", graph.size());
  }
  if (!graph.is_chain() || graph.size() != seen) {
    text += fmt::format("@edges {}\n", pairs_text(graph.edges(), '-'));
  }
  if (!graph.replica_pairs().empty()) {
    text += fmt::format("@replicas {}\n", pairs_text(graph.replica_pairs(), '='));
  }
  if (const std::vector<int> frozen = graph.frozen(); !frozen.empty()) {
    text += fmt::format("@frozen {}\n", fmt::join(frozen, ","));
  }
  if (const std::vector<int> sizes = graph.microbatch_sizes(); !sizes.empty()) {
    text += fmt::format("@sizes {}\n", fmt::join(sizes, ","));
  }
  return text;
}

std::string place_text(const std::vector<std::vector<Rank>>& places) {
  std::string text;
  for (std::size_t row = 0; row < places.size(); ++row) {
    std::vector<int> ranks;
    for (const Rank rank : places[row]) {
      ranks.push_back(rank.value);
    }
    text += ranks.empty() ? "" : fmt::format(" {}={}", row, fmt::join(ranks, ","));
  }
  return text.empty() ? "" : "@place" + text + "\n";
}

std::string header_text(const Schedule& schedule) {
  const Schedule::Headers& headers = schedule.headers();
  std::string text = schedule.form() == Schedule::Form::List ? "@form list\n" : "";
  const std::pair<const char*, const std::optional<int>*> numbers[] = {
      {"rows", &headers.rows},
      {"stages", &headers.stages},
      {"microbatches", &headers.microbatches}};
  for (const auto& [name, value] : numbers) {
    if (*value) {
      text += fmt::format("@{} {}\n", name, **value);
    }
  }
  return text + (headers.graph ? graph_text(schedule, *headers.graph) : "") +
         place_text(headers.places);
}

}  // namespace

Schedule Schedule::parse(std::string_view text) {
  return Parser(text).run();
}

std::vector<StageGraph::Edge> parse_edges(std::string_view text) {
  return parse_pairs(text, '-', "an edge");
}

StageGraph parse_stage_graph(std::string_view edges) {
  const std::vector<StageGraph::Edge> pairs = parse_edges(edges);
  int stages = 0;
  for (const auto& [from, to] : pairs) {
    stages = std::max({stages, from + 1, to + 1});
  }
  return StageGraph::from_edges(stages, pairs);
}

std::string to_string(const Schedule& schedule) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::size_t> width(schedule.columns(), 1);
  for (const Schedule::Row& row : schedule.rows()) {
    auto& texts = cells.emplace_back();
    for (std::size_t c = 0; c < row.size(); ++c) {
      texts.push_back(to_string(row[c]));
      width[c] = std::max(width[c], texts.back().size());
    }
  }
  std::string text = header_text(schedule);
  for (const auto& row : cells) {
    if (row.empty()) {
      text += '.';  // a row without cells still needs a line
    }
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += row[c];
      if (c + 1 < row.size()) {
        text.append(width[c] - row[c].size() + 1, ' ');
      }
    }
    text += '\n';
  }
  return text;
}

}  // namespace stagecraft
