#include "stagecraft/scheduler/formats/json/costs_json.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/costs/backward_times.h"
#include "stagecraft/scheduler/formats/json/costs_fields.h"
#include "stagecraft/scheduler/formats/json/json_reader.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"
#include "stagecraft/scheduler/model/number_range.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {
namespace {

using formats::BytesField;
using formats::JsonReader;
using formats::kBytes;
using formats::KindField;
using formats::kKinds;
using formats::kOperator;
using formats::Location;
using formats::OperatorField;
using formats::quoted;
using Pair = std::pair<int, int>;

/// Further unknown fields are counted, not listed.
constexpr std::size_t kMostNotes = 20;

/// A field of an object: its name, and the function that reads its value.
struct Field {
  std::string name;
  std::function<void()> read;
};

class CostsDocument {
 public:
  explicit CostsDocument(std::string_view text) : json_(text) {}

  ReadCosts read() {
    require_version(json_);
    object("costs.json",
           {{"version", [&] { (void)json_.skip(); }},
            {"device", [&] { device(); }},
            {"devices", [&] { list("devices", [&] { device_traits(); }); }},
            {"operators", [&] { costs_.operators = operators(); }},
            {"samples", [&] { costs_.samples = samples(); }},
            {"batch", [&] { costs_.batch = whole("batch", kLargest); }},
            {"sizes", [&] { list("sizes", [&] { size(); }); }},
            {"parameters", [&] { list("parameters", [&] { parameter(); }); }},
            {"stages", [&] { stages(); }},
            {"links", [&] { links(); }}});
    json_.finish();
    place_stages();
    place_links();
    faults_.refuse_if_any();
    if (more_notes_ > 0) {
      notes_.push_back(fmt::format("and {} more that are unknown", more_notes_));
    }
    return {std::move(costs_), std::move(notes_)};
  }

 private:
  using StatedDurations = std::vector<std::pair<double Durations::*, double>>;

  /// The values that one entry of "each" states of a stage.
  struct Stage {
    std::size_t at = 0;
    StatedDurations durations;
    std::vector<std::pair<std::vector<double> MemoryModel::*, double>> bytes;
  };

  /// The values that an object states of a link.
  struct StatedLink {
    std::optional<double> latency, bandwidth;
  };

  /// Reads the version first, on a reader of its own: the meaning of the other fields depends on
  /// it.
  static void require_version(JsonReader json) {
    const std::size_t begin = json.offset();
    if (json.next() != JsonReader::Kind::Object) {
      json.refuse(begin, R"(expected costs in braces, e.g. {"version": 1, "stages": {}})");
    }
    json.open();
    while (const auto key = json.next_key()) {
      const std::size_t at = json.offset();
      if (*key != "version") {
        (void)json.skip();
        continue;
      }
      const int version = json.integer().value_or(0);
      if (version < 1) {
        json.refuse(at, "field \"version\" needs a whole number of at least 1");
      }
      if (version > kCostsVersion) {
        json.refuse(at,
                    fmt::format("costs.json has version {}, this program reads up to {}; use a "
                                "newer program, or write the file again with this one",
                                version,
                                kCostsVersion));
      }
      return;
    }
    json.refuse(begin,
                R"(costs.json needs its version; write {"version": 1, "stages": {}, "links": {}})"
                " with the durations and bytes of stages in one section and those of links between "
                "rows in the other");
  }

  /// Reads a value. After a fault, reading continues after the value. If an entry has a fault
  /// already, its missing fields are not reported. Errors: ScheduleParse if the text is no JSON.
  void attempt(const std::function<void()>& read) {
    const JsonReader before = json_;
    const std::size_t faults = faults_.count();
    try {
      read();
    } catch (const Error& error) {
      if (faults_.too_many()) {
        throw;
      }
      json_ = before;
      (void)json_.skip();
      if (faults_.count() == faults) {
        faults_.note(error.message());
      }
    }
  }

  /// Reads an object whose fields may come in any order; `what` names it in messages.
  void object(const std::string& what, const std::vector<Field>& fields) {
    if (json_.next() != JsonReader::Kind::Object) {
      json_.refuse(json_.offset(), fmt::format("{} needs an object, in braces", what));
    }
    json_.open();
    std::set<std::string> seen;
    while (const auto key = json_.next_key()) {
      const auto field = std::ranges::find(fields, *key, &Field::name);
      if (field == fields.end()) {
        note(what, *key, fields);
        (void)json_.skip();
        continue;
      }
      const std::size_t at = json_.key_offset();
      const bool again = !seen.insert(*key).second;
      attempt([&] {
        if (again) {
          json_.refuse(at, fmt::format("field \"{}\" appears twice; keep one", *key));
        }
        field->read();
      });
    }
  }

  /// Notes an unknown field, once for all objects of a kind.
  void note(const std::string& what, const std::string& name, const std::vector<Field>& fields) {
    if (!noted_.emplace(what, name).second) {
      return;
    }
    if (notes_.size() == kMostNotes) {
      ++more_notes_;
      return;
    }
    std::vector<std::string> names;
    std::ranges::transform(fields, std::back_inserter(names), &Field::name);
    const Location at = json_.location(json_.key_offset());
    notes_.push_back(
        fmt::format("line {}, column {}: {} has a {} {} that this version does not know and "
                    "ignores; {}there are {}",
                    at.line,
                    at.column,
                    what,
                    what == "costs.json" ? "section" : "field",
                    quoted(name),
                    did_you_mean(name, names),
                    fmt::join(names, ", ")));
  }

  void list(const std::string& name, const std::function<void()>& element) {
    if (json_.next() != JsonReader::Kind::Array) {
      json_.refuse(json_.offset(), fmt::format("field \"{}\" needs a list", name));
    }
    json_.open();
    while (json_.next_element()) {
      attempt(element);
    }
  }

  double number(const std::string& name) {
    return between(name, 0, std::numeric_limits<double>::max(), "a number of at least 0");
  }

  double above_zero(const std::string& name) {
    return between(name,
                   std::numeric_limits<double>::min(),
                   std::numeric_limits<double>::max(),
                   "a number above 0");
  }

  /// Returns the share; negative if I adds to the bytes that wait for W.
  double share() {
    return between(
        "input_release", std::numeric_limits<double>::lowest(), 1, "a share of at most 1");
  }

  double between(const std::string& name, double lowest, double largest, const char* wanted) {
    const std::size_t at = json_.offset();
    const bool is_number = json_.next() == JsonReader::Kind::Number;
    const std::string_view text = json_.skip();
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (!is_number || error != std::errc() || end != text.data() + text.size() ||
        !(value >= lowest && value <= largest)) {
      json_.refuse(at, fmt::format("field \"{}\" needs {}, got {}", name, wanted, quoted(text)));
    }
    return value;
  }

  int whole(const std::string& name, int largest = kMaxStages - 1) {
    const std::size_t at = json_.offset();
    const auto value = json_.integer();
    if (!value || *value < 0 || *value > largest) {
      json_.refuse(at,
                   fmt::format("field \"{}\" needs a whole number from 0 to {}", name, largest));
    }
    return *value;
  }

  std::string text(const std::string& name) {
    const std::size_t at = json_.offset();
    auto value = json_.string();
    if (!value) {
      json_.refuse(at, fmt::format("field \"{}\" needs a text in quotes", name));
    }
    return std::move(*value);
  }

  bool truth(const std::string& name) {
    const std::size_t at = json_.offset();
    if (json_.next() != JsonReader::Kind::Boolean) {
      json_.refuse(at, fmt::format("field \"{}\" needs true or false", name));
    }
    return json_.skip() == "true";
  }

  void device() {
    CostDevice& device = costs_.device;
    object("\"device\"",
           {{"name", [&] { device.name = text("name"); }},
            {"threads", [&] { device.threads = whole("threads", kLargest); }},
            {"processors", [&] { device.processors = whole("processors", kLargest); }},
            {"noise", [&] { device.noise = number("noise"); }},
            {"task", [&] { device.task = number("task"); }},
            {"step", [&] { device.step = number("step"); }},
            {"split", [&] { device.split = number("split"); }},
            {"split_bytes", [&] { device.split_bytes = number("split_bytes"); }},
            {"precision", [&] { device.precision = text("precision"); }}});
  }

  void device_traits() {
    const std::size_t at = json_.offset();
    int rank = -1;
    DeviceTraits traits;
    object("an entry of \"devices\"",
           {{"device", [&] { rank = whole("device", kMaxRanks - 1); }},
            {"speed", [&] { traits.speed = above_zero("speed"); }},
            {"memory", [&] { traits.memory = above_zero("memory"); }}});
    if (rank < 0) {
      json_.refuse(at, "an entry of \"devices\" needs its number, e.g. \"device\": 2");
    }
    if (!costs_.devices.emplace(rank, traits).second) {
      json_.refuse(at, fmt::format("device {} appears twice; keep one", rank));
    }
  }

  std::vector<OperatorCost> operators() {
    std::vector<OperatorCost> operators;
    operators_.clear();
    list("operators", [&] { operators.push_back(operator_cost()); });
    return operators;
  }

  int samples() {
    const std::size_t at = json_.offset();
    const int samples = whole("samples", kLargest);
    if (samples < 1) {
      json_.refuse(at, "field \"samples\" needs at least one sample");
    }
    return samples;
  }

  void size() {
    const std::size_t at = json_.offset();
    int of = 0;
    std::vector<OperatorCost> figures;
    object("an entry of \"sizes\"",
           {{"samples", [&] { of = samples(); }}, {"operators", [&] { figures = operators(); }}});
    if (of < 1) {
      json_.refuse(at, "an entry of \"sizes\" needs its \"samples\", e.g. \"samples\": 8");
    }
    if (!costs_.operators_at.emplace(of, std::move(figures)).second) {
      json_.refuse(at, fmt::format("{} samples appear twice; keep one", of));
    }
  }

  void parameter() {
    const std::size_t at = json_.offset();
    ParameterCost cost;
    object("an entry of \"parameters\"",
           {{"name", [&] { cost.name = text("name"); }},
            {"bytes", [&] { cost.bytes = number("bytes"); }},
            {"held", [&] { cost.held = number("held"); }}});
    if (cost.name.empty()) {
      json_.refuse(at, "an entry of \"parameters\" needs its name, e.g. \"name\": \"0.weight\"");
    }
    if (!parameters_.insert(cost.name).second) {
      json_.refuse(at, fmt::format("parameter {} appears twice; keep one", quoted(cost.name)));
    }
    costs_.parameters.push_back(std::move(cost));
  }

  OperatorRead read_of_operator() {
    const std::size_t at = json_.offset();
    OperatorRead read{.producer = -1};
    object("an entry of \"reads\"",
           {{"from", [&] { read.producer = whole("from", kLargest); }},
            {"output", [&] { read.output = whole("output", kLargest); }},
            {"bytes", [&] { read.bytes = number("bytes"); }}});
    if (read.producer < 0) {
      json_.refuse(at, "an entry of \"reads\" needs the operator it reads, e.g. \"from\": 0");
    }
    return read;
  }

  OperatorCost operator_cost() {
    const std::size_t at = json_.offset();
    OperatorCost cost;
    cost.id = -1;
    std::vector<Field> fields{
        {"id", [&] { cost.id = whole("id", kLargest); }},
        {"name", [&] { cost.name = text("name"); }},
        {"stage", [&] { cost.stage = StageId(whole("stage")); }},
        {"reads", [&] { list("reads", [&] { cost.reads.push_back(read_of_operator()); }); }},
        {"parameters",
         [&] { list("parameters", [&] { cost.parameters.push_back(text("parameters")); }); }},
        {"joined", [&] { cost.joined = truth("joined"); }}};
    for (const OperatorField& field : kOperator) {
      fields.push_back({field.name, [&, field] { cost.*field.value = number(field.name); }});
    }
    object("an entry of \"operators\"", fields);
    if (cost.id < 0) {
      json_.refuse(at, "an entry of \"operators\" needs its number, e.g. \"id\": 3");
    }
    if (!operators_.insert(cost.id).second) {
      json_.refuse(at, fmt::format("operator {} appears twice; keep one", cost.id));
    }
    return cost;
  }

  void stages() {
    object("\"stages\"",
           {{"usual", [&] { usual_durations(); }},
            {"each", [&] { list("each", [&] { stage(); }); }},
            {"group", [&] { costs_.stages.group = number("group"); }},
            {"groups", [&] { list("groups", [&] { group(); }); }},
            {"input_release", [&] { costs_.stages.memory.input_release = share(); }}});
  }

  void links() {
    object("\"links\"",
           {{"usual", [&] { object("\"usual\" of \"links\"", link_fields(usual_link_)); }},
            {"sums",
             [&] {
               sums_.emplace();
               object("\"sums\" of \"links\"", link_fields(*sums_));
             }},
            {"each", [&] { list("each", [&] { link_between(); }); }},
            {"edge_bytes", [&] { costs_.links.bytes = number("edge_bytes"); }},
            {"edges", [&] { list("edges", [&] { edge(); }); }}});
  }

  std::vector<Field> kind_fields(const std::function<void(double Durations::*, double)>& set) {
    std::vector<Field> fields;
    for (const KindField& kind : kKinds) {
      fields.push_back({kind.name, [=, this] { set(kind.duration, number(kind.name)); }});
    }
    return fields;
  }

  void usual_durations() {
    usual_at_ = json_.offset();
    object("\"usual\" of \"stages\"", kind_fields([&](double Durations::*kind, double value) {
             usual_durations_.emplace_back(kind, value);
           }));
  }

  void stage() {
    const std::size_t at = json_.offset();
    int number_of = -1;
    Stage stage{.at = at, .durations = {}, .bytes = {}};
    std::vector<Field> fields = kind_fields(
        [&](double Durations::*kind, double value) { stage.durations.emplace_back(kind, value); });
    for (const BytesField& field : kBytes) {
      fields.push_back(
          {field.name, [&, field] { stage.bytes.emplace_back(field.bytes, number(field.name)); }});
    }
    fields.push_back({"stage", [&] { number_of = whole("stage"); }});
    object("an entry of \"stages\"", fields);
    if (number_of < 0) {
      json_.refuse(at, "an entry of \"stages\" needs its number, e.g. \"stage\": 3");
    }
    if (!stages_.emplace(number_of, std::move(stage)).second) {
      json_.refuse(at, fmt::format("stage {} appears twice; keep one", number_of));
    }
  }

  /// Reads an entry of a list about a pair, which may appear once.
  template <class Value, class Extra>
  void between(const std::string& what, std::map<Pair, Value>& all, Extra&& fields) {
    const std::size_t at = json_.offset();
    int from = -1;
    int to = -1;
    Value value{};
    std::vector<Field> known = fields(value);
    known.push_back({"from", [&] { from = whole("from"); }});
    known.push_back({"to", [&] { to = whole("to"); }});
    object(fmt::format("an entry of \"{}\"", what), known);
    if (from < 0 || to < 0) {
      json_.refuse(at, "this entry needs both its ends, e.g. \"from\": 0, \"to\": 1");
    }
    if (!all.emplace(Pair{from, to}, value).second) {
      json_.refuse(at, fmt::format("{} to {} appears twice; keep one", from, to));
    }
  }

  std::vector<Field> link_fields(StatedLink& link) {
    return {{"latency", [&] { link.latency = number("latency"); }},
            {"bandwidth", [&] { link.bandwidth = bandwidth(); }}};
  }

  /// Returns the bandwidth; infinite for null, because a number of JSON is finite.
  double bandwidth() {
    const std::size_t at = json_.offset();
    if (json_.next() == JsonReader::Kind::Null) {
      (void)json_.skip();
      return std::numeric_limits<double>::infinity();
    }
    const double value = number("bandwidth");
    if (value == 0) {
      json_.refuse(at, "field \"bandwidth\" needs a number above 0, because nothing arrives at 0");
    }
    return value;
  }

  void link_between() {
    between("links", links_, [&](StatedLink& link) { return link_fields(link); });
  }

  void edge() {
    between("edges", costs_.links.edge_bytes, [&](double& bytes) {
      return std::vector<Field>{{"bytes", [&] { bytes = number("bytes"); }}};
    });
  }

  void group() {
    const std::size_t at = json_.offset();
    std::vector<int> stages;
    double duration = -1;
    object("an entry of \"groups\"",
           {{"stages", [&] { list("stages", [&] { stages.push_back(whole("stages")); }); }},
            {"duration", [&] { duration = number("duration"); }}});
    if (stages.size() != 2 || duration < 0) {
      json_.refuse(at, "an entry of \"groups\" needs {\"stages\": [0, 7], \"duration\": 0.02}");
    }
    const bool known = costs_.stages.groups.contains(Pair{stages[1], stages[0]});
    if (known || !costs_.stages.groups.emplace(Pair{stages[0], stages[1]}, duration).second) {
      json_.refuse(at,
                   fmt::format("stages {} and {} appear twice; keep one", stages[0], stages[1]));
    }
  }

  /// Runs last, because "usual" may come after "each".
  void place_stages() {
    const bool known = states_backward(usual_durations_);
    if (const auto made = set(costs_.stages.usual, usual_durations_, usual_at_, false)) {
      notes_.push_back(fmt::format("\"usual\" of \"stages\" {}", *made));
    }
    std::map<std::string, std::vector<int>> made_of;
    for (const auto& [number, stage] : stages_) {
      const auto s = static_cast<std::size_t>(number);
      if (!stage.durations.empty()) {
        costs_.stages.each.resize(s + 1, costs_.stages.usual);
        if (const auto made = set(costs_.stages.each[s], stage.durations, stage.at, known)) {
          made_of[*made].push_back(number);
        }
      }
      for (const auto& [field, value] : stage.bytes) {
        std::vector<double>& bytes = costs_.stages.memory.*field;
        bytes.resize(s + 1);
        bytes[s] = value;
      }
    }
    for (const auto& [made, numbers] : made_of) {
      notes_.push_back(fmt::format("\"each\", {}, {}", counted("stage", ranges_of(numbers)), made));
    }
  }

  static bool is_backward(double Durations::*kind) {
    return kind == &Durations::backward || kind == &Durations::backward_input ||
           kind == &Durations::backward_weight;
  }
  static bool states_backward(const StatedDurations& stated) {
    return std::ranges::any_of(stated, [](const auto& one) { return is_backward(one.first); });
  }

  /// Returns a note on times that were computed. `known`: as in set_backward().
  std::optional<std::string> set(Durations& durations,
                                 const StatedDurations& stated,
                                 std::size_t at,
                                 bool known) {
    StatedBackward backward;
    for (const auto& [kind, value] : stated) {
      if (kind == &Durations::backward) {
        backward.whole = value;
      } else if (kind == &Durations::backward_input) {
        backward.input = value;
      } else if (kind == &Durations::backward_weight) {
        backward.weight = value;
      } else {
        durations.*kind = value;
      }
    }
    try {
      return set_backward(durations, backward, known);
    } catch (const Error& error) {
      faults_.attempt([&] { json_.refuse(at, error.message()); });
      return std::nullopt;
    }
  }

  /// Runs last, like place_stages().
  void place_links() {
    LinkCosts& links = costs_.links;
    const auto placed = [](const StatedLink& stated, const Link& otherwise) {
      return Link{.latency = stated.latency.value_or(otherwise.latency),
                  .bandwidth = stated.bandwidth.value_or(otherwise.bandwidth)};
    };
    links.usual = placed(usual_link_, {});
    if (sums_) {
      links.sums = placed(*sums_, links.usual);
    }
    for (const auto& [ends, link] : links_) {
      links.each[ends] = placed(link, links.usual);
    }
  }

  static constexpr int kLargest = std::numeric_limits<int>::max();

  JsonReader json_;
  formats::FaultList faults_;
  Costs costs_;
  std::vector<std::string> notes_;
  std::size_t more_notes_ = 0;
  std::set<std::pair<std::string, std::string>> noted_;  // by object and field
  std::set<int> operators_;                              // of the current list, by id
  std::set<std::string> parameters_;
  std::size_t usual_at_ = 0;
  StatedDurations usual_durations_;
  std::map<int, Stage> stages_;
  StatedLink usual_link_;
  std::optional<StatedLink> sums_;
  std::map<Pair, StatedLink> links_;
};

}  // namespace

ReadCosts parse_costs(std::string_view text) {
  formats::require_size(text);
  return CostsDocument(text).read();
}

}  // namespace stagecraft
