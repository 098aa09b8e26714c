#include "stagecraft/compiler/cut/cut_into_stages.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/compiler/cut/cut_points.h"
#include "stagecraft/compiler/cut/marked_stages.h"
#include "stagecraft/compiler/graph/operator_paths.h"
#include "stagecraft/compiler/graph/state_paths.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

namespace stagecraft {
namespace {

using Ranges = std::vector<std::pair<int, int>>;

constexpr double kSlack = 0.03;  ///< relative difference between two measurements of the same time

class Cutter {
 public:
  Cutter(const Graph& graph, const std::vector<OperatorCost>& costs)
      : graph_(graph), costs_(costs), own_(own_paths(graph)) {}

  StageAssignment operator()(const AtMarkers&) const { return marked_stages(graph_); }

  StageAssignment operator()(const Balanced& balanced) const {
    check_costs();
    const std::vector<std::size_t> points = cut_points(graph_);
    if (balanced.stages < 1 || static_cast<std::size_t>(balanced.stages) > points.size()) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("the model can be cut into {}, found {}; an operator that "
                      "writes in place stays with those that use its memory",
                      points.size() == 1 ? "1 stage" : fmt::format("1 to {} stages", points.size()),
                      balanced.stages));
    }
    const std::vector<CutItem> items = items_between(points);
    std::vector<std::size_t> firsts;
    for (const ItemRange& range :
         balanced_cut(items, balanced.stages, balanced.memory_cap, kSlack)) {
      firsts.push_back(points[range.first]);
    }
    return consecutive(firsts);
  }

  StageAssignment operator()(const At& at) const {
    check_origin(at.origin);
    const std::vector<std::size_t> points = cut_points(graph_);
    std::vector<std::size_t> firsts{0};
    for (const std::string& place : at.places) {
      const std::size_t wanted = operator_at(place);
      if (wanted == 0 && place == at.places.front()) {
        continue;  // this place names the first stage too
      }
      const std::size_t first = *std::prev(std::ranges::upper_bound(points, wanted));
      if (first <= firsts.back()) {
        throw Error(
            Errc::UsageArgument,
            fmt::format(
                "a stage cannot begin at \"{}\": it would begin with op:{}, and the stage "
                "before it begins with op:{}; give places in the order of the forward, with "
                "at least one operator between them that can be separated",
                place,
                first,
                firsts.back()));
      }
      firsts.push_back(first);
    }
    return consecutive(firsts);
  }

  StageAssignment operator()(const OperatorSets& sets) const {
    check_origin(sets.origin);
    constexpr int kNone = -1;
    StageAssignment result{std::vector<int>(graph_.nodes.size(), kNone), {}};
    for (const Ranges& ranges : sets.stages) {
      const int stage = static_cast<int>(result.names.size());
      result.names.emplace_back();
      bool empty = true;
      for (const auto& [first, last] : ranges) {
        check_range(first, last);
        for (int n = first; n <= last; ++n) {
          int& of = result.stage_of[static_cast<std::size_t>(n)];
          if (of != kNone) {
            throw Error(Errc::UsageArgument,
                        fmt::format("op:{} is in the sets of stages {} and {}; an operator belongs "
                                    "to one stage",
                                    n,
                                    of,
                                    stage));
          }
          of = stage;
          empty = false;
        }
      }
      if (empty) {
        throw Error(
            Errc::UsageArgument,
            fmt::format("the set of stage {} is empty; every stage has an operator", stage));
      }
    }
    const auto missing = std::ranges::find(result.stage_of, kNone);
    if (missing != result.stage_of.end()) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("op:{} is in no stage's set; every operator of 0 to {} belongs to one",
                      missing - result.stage_of.begin(),
                      graph_.nodes.size() - 1));
    }
    name_stages(result);
    return result;
  }

 private:
  void check_origin(const std::optional<CutOrigin>& origin) const {
    const OperatorListHash own = hash_of_operators(operator_names(graph_));
    if (origin && origin->operators != own) {
      throw Error(Errc::UsageFile,
                  fmt::format("{} was written for another model, with {} operators (hash {:016x}), "
                              "and this model has {} (hash {:016x}): the numbers in the file mean "
                              "other operators here; write the file again for this model, with "
                              "--cut-out or by a plan from its own costs",
                              origin->file,
                              origin->operators.operators,
                              origin->operators.names,
                              own.operators,
                              own.names));
    }
  }

  void check_costs() const {
    bool same = costs_.size() == graph_.nodes.size();
    for (std::size_t n = 0; same && n < costs_.size(); ++n) {
      same = costs_[n].name == operator_name(graph_.nodes[n]);
    }
    if (!same) {
      throw Error(Errc::UsageArgument,
                  fmt::format("the costs are those of another model: expected one for each of the "
                              "{} operators, with its name and in their order, found {}; measure "
                              "them again",
                              graph_.nodes.size(),
                              costs_.size()));
    }
  }

  void check_range(int first, int last) const {
    if (first < 0 || last < first || static_cast<std::size_t>(last) >= graph_.nodes.size()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("expected ranges of operators between 0 and {}, found {}-{}",
                              graph_.nodes.size() - 1,
                              first,
                              last));
    }
  }

  /// Makes one item of the operators between two cut points.
  [[nodiscard]] std::vector<CutItem> items_between(const std::vector<std::size_t>& points) const {
    std::vector<CutItem> items(points.size(), CutItem{.time = 0});
    const std::vector<double> crossing = crossing_behind();
    std::set<ValueId> held;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::size_t end = i + 1 < points.size() ? points[i + 1] : graph_.nodes.size();
      for (std::size_t n = points[i]; n < end; ++n) {
        const OperatorCost& cost = costs_[n];
        // The driver's thread has the time of its code.
        items[i].time += is_driver_code(graph_.nodes[n]) ? 0.0 : cost.time();
        items[i].bytes += cost.kept + state_bytes(graph_.nodes[n], held);
      }
      items[i].crossing = crossing[end - 1];
    }
    return items;
  }

  /// Returns the bytes of buffers and of parameters with their gradients, without those that an
  /// operator before has used.
  double state_bytes(const Node& node, std::set<ValueId>& held) const {
    double bytes = 0;
    for (const ValueId read : reads_of(node)) {
      const Value& value = graph_.at(read);
      const bool parameter = value.kind == ValueKind::Parameter;
      if ((parameter || value.kind == ValueKind::Buffer) && held.insert(read).second) {
        bytes += static_cast<double>(bytes_of(value)) * (parameter && value.requires_grad ? 2 : 1);
      }
    }
    return bytes;
  }

  /// Returns by operator the bytes of the values that are made by then and read later.
  [[nodiscard]] std::vector<double> crossing_behind() const {
    std::vector<double> change(graph_.nodes.size() + 1, 0);
    std::vector<std::size_t> last_read(graph_.values.size(), 0);
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        last_read[read.index()] = n;
      }
    }
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const Value& value = graph_.values[v];
      const auto made = static_cast<std::size_t>(value.position);
      if (value.kind == ValueKind::Computed && last_read[v] > made) {
        change[made] += static_cast<double>(bytes_of(value));
        change[last_read[v]] -= static_cast<double>(bytes_of(value));
      }
    }
    double crossing = 0;
    for (double& c : change) {
      crossing += c;
      c = crossing;
    }
    return change;
  }

  /// Errors: UsageArgument for a place that does not exist.
  [[nodiscard]] std::size_t operator_at(const std::string& place) const {
    constexpr std::string_view kNumber = "op:";
    if (place.starts_with(kNumber)) {
      const std::string_view digits = std::string_view(place).substr(kNumber.size());
      std::size_t number = 0;
      const auto [end, error] =
          std::from_chars(digits.data(), digits.data() + digits.size(), number);
      if (error == std::errc() && end == digits.data() + digits.size() &&
          number < graph_.nodes.size()) {
        return number;
      }
      throw Error(Errc::UsageArgument,
                  fmt::format("\"{}\" is no operator of the model; they are op:0 to op:{}",
                              place,
                              graph_.nodes.size() - 1));
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        const std::string* name = name_of_state(graph_, read);
        if (name != nullptr && is_below(*name, place)) {
          return n;
        }
      }
    }
    refuse_path(place);
  }

  [[noreturn]] void refuse_path(const std::string& place) const {
    std::set<std::string> known;
    for (const Node& node : graph_.nodes) {
      for (const ValueId read : reads_of(node)) {
        if (const std::string* name = name_of_state(graph_, read)) {
          known.insert(*name);
          const std::vector<std::string> above = paths_above(*name);
          known.insert(above.begin(), above.end());
        }
      }
    }
    throw Error(
        Errc::UsageArgument,
        fmt::format("no operator uses a parameter or buffer below \"{}\"; {}name a path of the "
                    "module (one tensor of several names counts under the first), or an operator "
                    "(\"op:12\")",
                    place,
                    did_you_mean(place, {known.begin(), known.end()})));
  }

  [[nodiscard]] StageAssignment consecutive(const std::vector<std::size_t>& firsts) const {
    StageAssignment result{std::vector<int>(graph_.nodes.size(), 0),
                           std::vector<std::string>(firsts.size())};
    for (std::size_t s = 1; s < firsts.size(); ++s) {
      std::fill(result.stage_of.begin() + static_cast<std::ptrdiff_t>(firsts[s]),
                result.stage_of.end(),
                static_cast<int>(s));
    }
    name_stages(result);
    return result;
  }

  /// Names each stage by the first path of its operators. A name that is taken gets the number of
  /// the stage's first operator.
  void name_stages(StageAssignment& assignment) const {
    std::set<std::string> taken;
    for (std::size_t s = 0; s < assignment.names.size(); ++s) {
      std::string name;
      std::size_t first = graph_.nodes.size();
      for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
        if (assignment.stage_of[n] == static_cast<int>(s)) {
          first = n;
          name = own_[n].empty() ? name : own_[n];
        }
      }
      name = name.empty() ? "main" : name;
      if (!taken.insert(name).second) {
        name += fmt::format("@op:{}", first);
        taken.insert(name);
      }
      assignment.names[s] = std::move(name);
    }
  }

  const Graph& graph_;
  const std::vector<OperatorCost>& costs_;
  const std::vector<std::string> own_;
};

}  // namespace

StageAssignment cut_into_stages(const Graph& graph,
                                const Cut& cut,
                                const std::vector<OperatorCost>& costs) {
  return std::visit(Cutter(graph, costs), cut);
}

}  // namespace stagecraft
