#include "stagecraft/scheduler/formats/costs_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/formats/cell_text.h"
#include "stagecraft/scheduler/formats/json_reader.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {
namespace {

using formats::JsonReader;
using formats::quoted;

/// A field of an object: its name, and how its value is read.
struct Field {
  std::string name;
  std::function<void()> read;
};

/// Where a kind's duration is kept.
struct KindField {
  char letter;
  double Durations::*duration;
};
constexpr KindField kKinds[] = {{'F', &Durations::forward},
                                {'B', &Durations::backward},
                                {'I', &Durations::backward_input},
                                {'W', &Durations::backward_weight},
                                {'U', &Durations::update}};

struct BytesField {
  const char* name;
  std::vector<double> MemoryModel::*bytes;
};
constexpr BytesField kBytes[] = {{"fixed", &MemoryModel::fixed},
                                 {"activations", &MemoryModel::activations},
                                 {"transient", &MemoryModel::transient}};

class Document {
 public:
  explicit Document(std::string_view text) : json_(text) {}

  Costs read() {
    object("costs",
           {{"durations", [&] { durations(); }},
            {"stages", [&] { list("stages", [&] { stage(); }); }},
            {"group", [&] { costs_.times.group = number("group"); }},
            {"groups", [&] { list("groups", [&] { group(); }); }},
            {"link", [&] { costs_.times.link = link(); }},
            {"links", [&] { list("links", [&] { link_between(); }); }},
            {"edge_bytes", [&] { costs_.times.bytes = number("edge_bytes"); }},
            {"edges", [&] { list("edges", [&] { edge(); }); }},
            {"input_release", [&] { costs_.memory.input_release = share(); }}});
    json_.finish();
    place_stages();
    return std::move(costs_);
  }

 private:
  /// What one entry of "stages" states.
  struct Stage {
    std::vector<std::pair<double Durations::*, double>> durations;
    std::vector<std::pair<std::vector<double> MemoryModel::*, double>> bytes;
  };

  void object(const std::string& what, const std::vector<Field>& fields) {
    if (json_.next() != JsonReader::Kind::Object) {
      json_.refuse(json_.offset(), fmt::format("{} want an object, in braces", what));
    }
    json_.open();
    std::set<std::string> seen;
    while (const auto key = json_.next_key()) {
      const auto field = std::ranges::find(fields, *key, &Field::name);
      if (field == fields.end()) {
        std::vector<std::string> names;
        std::ranges::transform(fields, std::back_inserter(names), &Field::name);
        json_.refuse(json_.key_offset(),
                     fmt::format("unknown field {}; {}there are {}",
                                 quoted(*key),
                                 did_you_mean(*key, names),
                                 fmt::join(names, ", ")));
      }
      if (!seen.insert(*key).second) {
        json_.refuse(json_.key_offset(), fmt::format("field \"{}\" appears twice; keep one", *key));
      }
      field->read();
    }
  }

  void list(const std::string& name, const std::function<void()>& element) {
    if (json_.next() != JsonReader::Kind::Array) {
      json_.refuse(json_.offset(), fmt::format("field \"{}\" wants a list", name));
    }
    json_.open();
    while (json_.next_element()) {
      element();
    }
  }

  double number(const std::string& name) {
    const std::size_t at = json_.offset();
    const bool is_number = json_.next() == JsonReader::Kind::Number;
    const std::string_view text = json_.skip();
    double value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!is_number || error != std::errc() || end != text.data() + text.size() ||
        !std::isfinite(value) || value < 0) {
      json_.refuse(
          at, fmt::format("field \"{}\" wants a number of at least 0, got {}", name, quoted(text)));
    }
    return value;
  }

  double share() {
    const std::size_t at = json_.offset();
    const double value = number("input_release");
    if (value > 1) {
      json_.refuse(at, "field \"input_release\" wants a share from 0 to 1");
    }
    return value;
  }

  int whole(const std::string& name) {
    const std::size_t at = json_.offset();
    const auto value = json_.integer();
    if (!value || *value < 0 || *value >= kMaxStages) {
      json_.refuse(
          at, fmt::format("field \"{}\" wants a whole number from 0 to {}", name, kMaxStages - 1));
    }
    return *value;
  }

  std::vector<Field> kind_fields(const std::function<void(double Durations::*, double)>& set) {
    std::vector<Field> fields;
    for (const KindField& kind : kKinds) {
      const std::string name(1, kind.letter);
      fields.push_back({name, [=, this] { set(kind.duration, number(name)); }});
    }
    return fields;
  }

  void durations() {
    object("durations", kind_fields([&](double Durations::*kind, double value) {
             costs_.times.usual.*kind = value;
           }));
  }

  void stage() {
    const std::size_t at = json_.offset();
    int number_of = -1;
    Stage stage;
    std::vector<Field> fields = kind_fields(
        [&](double Durations::*kind, double value) { stage.durations.emplace_back(kind, value); });
    for (const BytesField& field : kBytes) {
      fields.push_back(
          {field.name, [&, field] { stage.bytes.emplace_back(field.bytes, number(field.name)); }});
    }
    fields.push_back({"stage", [&] { number_of = whole("stage"); }});
    object("stages", fields);
    if (number_of < 0) {
      json_.refuse(at, "an entry of \"stages\" wants its number, e.g. \"stage\": 3");
    }
    if (!stages_.emplace(number_of, std::move(stage)).second) {
      json_.refuse(at, fmt::format("stage {} appears twice; keep one", number_of));
    }
  }

  /// Reads an entry of a list that says something of a pair, once.
  template <class Value, class Extra>
  void between(std::map<CostModel::Pair, Value>& all, Value value, Extra&& fields) {
    const std::size_t at = json_.offset();
    int from = -1;
    int to = -1;
    std::vector<Field> known = fields(value);
    known.push_back({"from", [&] { from = whole("from"); }});
    known.push_back({"to", [&] { to = whole("to"); }});
    object("entries", known);
    if (from < 0 || to < 0) {
      json_.refuse(at, "this entry wants both its ends, e.g. \"from\": 0, \"to\": 1");
    }
    if (!all.emplace(CostModel::Pair{from, to}, value).second) {
      json_.refuse(at, fmt::format("{} to {} appears twice; keep one", from, to));
    }
  }

  std::vector<Field> link_fields(Link& link) {
    return {{"latency", [&] { link.latency = number("latency"); }},
            {"bandwidth", [&] {
               const std::size_t at = json_.offset();
               link.bandwidth = number("bandwidth");
               if (link.bandwidth == 0) {
                 json_.refuse(at, "field \"bandwidth\" wants a number above 0; nothing arrives");
               }
             }}};
  }

  Link link() {
    Link link;
    object("links", link_fields(link));
    return link;
  }

  void link_between() {
    between(costs_.times.links, Link{}, [&](Link& link) { return link_fields(link); });
  }

  void edge() {
    between(costs_.times.edge_bytes, 0.0, [&](double& bytes) {
      return std::vector<Field>{{"bytes", [&] { bytes = number("bytes"); }}};
    });
  }

  void group() {
    const std::size_t at = json_.offset();
    std::vector<int> stages;
    double duration = -1;
    object("groups",
           {{"stages", [&] { list("stages", [&] { stages.push_back(whole("stages")); }); }},
            {"duration", [&] { duration = number("duration"); }}});
    if (stages.size() != 2 || duration < 0) {
      json_.refuse(at, "an entry of \"groups\" wants {\"stages\": [0, 7], \"duration\": 0.02}");
    }
    if (!costs_.times.groups.emplace(CostModel::Pair{stages[0], stages[1]}, duration).second) {
      json_.refuse(at,
                   fmt::format("stages {} and {} appear twice; keep one", stages[0], stages[1]));
    }
  }

  /// Last, because "durations" may stand behind "stages".
  void place_stages() {
    if (stages_.empty()) {
      return;
    }
    const auto count = static_cast<std::size_t>(stages_.rbegin()->first) + 1;
    for (const auto& [number, stage] : stages_) {
      const auto s = static_cast<std::size_t>(number);
      if (!stage.durations.empty()) {
        costs_.times.stages.resize(s + 1, costs_.times.usual);
      }
      for (const auto& [kind, value] : stage.durations) {
        costs_.times.stages[s].*kind = value;
      }
      for (const auto& [field, value] : stage.bytes) {
        std::vector<double>& bytes = costs_.memory.*field;
        bytes.resize(count);
        bytes[s] = value;
      }
    }
  }

  JsonReader json_;
  Costs costs_;
  std::map<int, Stage> stages_;
};

std::string durations_text(const Durations& durations, const Durations* usual) {
  std::vector<std::string> parts;
  for (const KindField& kind : kKinds) {
    if (usual == nullptr || durations.*kind.duration != usual->*kind.duration) {
      parts.push_back(fmt::format(R"("{}": {})", kind.letter, durations.*kind.duration));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> stage_lines(const Costs& costs) {
  std::size_t stages = costs.times.stages.size();
  for (const BytesField& field : kBytes) {
    stages = std::max(stages, (costs.memory.*field.bytes).size());
  }
  std::vector<std::string> lines;
  for (std::size_t s = 0; s < stages; ++s) {
    std::string line = fmt::format(R"({{"stage": {})", s);
    const bool has_durations = s < costs.times.stages.size();
    if (has_durations && costs.times.stages[s] != costs.times.usual) {
      line += ", " + durations_text(costs.times.stages[s], &costs.times.usual);
    }
    for (const BytesField& field : kBytes) {
      const std::vector<double>& bytes = costs.memory.*field.bytes;
      if (s < bytes.size()) {
        line += fmt::format(R"(, "{}": {})", field.name, bytes[s]);
      }
    }
    lines.push_back(line + '}');
  }
  return lines;
}

std::string link_text(const Link& link) {
  std::string text = fmt::format(R"("latency": {})", link.latency);
  if (std::isfinite(link.bandwidth)) {
    text += fmt::format(R"(, "bandwidth": {})", link.bandwidth);
  }
  return text;
}

void add_list(std::string& text, std::string_view name, const std::vector<std::string>& lines) {
  if (!lines.empty()) {
    text += fmt::format(",\n \"{}\": [{}]", name, fmt::join(lines, ",\n  "));
  }
}

}  // namespace

Costs parse_costs(std::string_view text) {
  formats::require_size(text);
  return Document(text).read();
}

std::string to_json(const Costs& costs) {
  std::string text =
      fmt::format(R"({{"durations": {{{}}})", durations_text(costs.times.usual, nullptr));
  add_list(text, "stages", stage_lines(costs));
  if (costs.times.group) {
    text += fmt::format(",\n \"group\": {}", *costs.times.group);
  }
  std::vector<std::string> groups, links, edges;
  for (const auto& [stages, duration] : costs.times.groups) {
    groups.push_back(fmt::format(
        R"({{"stages": [{}, {}], "duration": {}}})", stages.first, stages.second, duration));
  }
  for (const auto& [ends, link] : costs.times.links) {
    links.push_back(
        fmt::format(R"({{"from": {}, "to": {}, {}}})", ends.first, ends.second, link_text(link)));
  }
  for (const auto& [ends, bytes] : costs.times.edge_bytes) {
    edges.push_back(
        fmt::format(R"({{"from": {}, "to": {}, "bytes": {}}})", ends.first, ends.second, bytes));
  }
  add_list(text, "groups", groups);
  text += fmt::format(",\n \"link\": {{{}}}", link_text(costs.times.link));
  add_list(text, "links", links);
  text += fmt::format(",\n \"edge_bytes\": {}", costs.times.bytes);
  add_list(text, "edges", edges);
  text += fmt::format(",\n \"input_release\": {}}}\n", costs.memory.input_release);
  return text;
}

}  // namespace stagecraft
