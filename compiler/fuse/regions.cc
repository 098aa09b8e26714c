#include "stagecraft/compiler/fuse/regions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include <c10/util/accumulate.h>
#include <fmt/format.h>

namespace stagecraft {
namespace {

using Sizes = std::vector<std::int64_t>;
using Nodes = std::set<std::size_t>;

constexpr std::int64_t kFewElements = 4096;  // of which a pass costs less than what is saved

/// How an operator that may be in a region looks, as modules call it.
struct Candidate {
  std::string_view name;
  int along = -1;            ///< the operand that says along which dimension, -1: along none
  bool keeps = false;        ///< the operand after it says that the dimension is kept
  bool view = false;         ///< computes nothing
  int gradients_of_one = 1;  ///< how many parts the gradient of an operand has
};

const Candidate* candidate(const Node& node) {
  static const auto all = [] {
    std::map<std::string_view, Candidate> rows;
    for (const std::string_view name :
         {"aten::add",         "aten::sub",        "aten::rsub",      "aten::mul",
          "aten::div",         "aten::neg",        "aten::abs",       "aten::sqrt",
          "aten::rsqrt",       "aten::reciprocal", "aten::square",    "aten::pow",
          "aten::exp",         "aten::log",        "aten::sin",       "aten::cos",
          "aten::erf",         "aten::tanh",       "aten::sigmoid",   "aten::silu",
          "aten::gelu",        "aten::relu",       "aten::maximum",   "aten::minimum",
          "aten::clamp",       "aten::clamp_min",  "aten::clamp_max", "aten::where",
          "aten::masked_fill", "aten::addcmul",    "aten::addcdiv",   "aten::logical_not",
          "aten::bitwise_not", "aten::eq",         "aten::ne",        "aten::lt",
          "aten::le",          "aten::gt",         "aten::ge",        "aten::logical_and",
          "aten::to",          "aten::_to_copy",   "aten::type_as",   "aten::multiply",
          "aten::subtract",    "aten::divide",     "aten::negative",  "aten::clone"}) {
      rows[name] = {.name = name};
    }
    for (const std::string_view name : {"aten::mean", "aten::sum", "aten::amax"}) {
      rows[name] = {.name = name, .along = 1, .keeps = true};
    }
    for (const std::string_view name : {"aten::softmax",
                                        "aten::log_softmax",
                                        "aten::_softmax",
                                        "aten::_log_softmax",
                                        "aten::cat"}) {
      rows[name] = {.name = name, .along = 1};
    }
    for (const std::string_view name : {"aten::chunk", "aten::split", "aten::split_with_sizes"}) {
      rows[name] = {.name = name, .along = 2, .view = true};
    }
    rows["aten::slice"] = {.name = "aten::slice", .along = 1, .view = true};
    rows["aten::expand"] = {.name = "aten::expand", .view = true};
    rows["aten::rms_norm"] = {.name = "aten::rms_norm", .gradients_of_one = 2};
    return rows;
  }();
  const auto found = all.find(node.name);
  return found == all.end() ? nullptr : &found->second;
}

bool is_along_last(const Candidate& candidate, const Node& node, std::size_t dimensions) {
  if (candidate.along < 0) {
    return true;
  }
  const auto is_last = [&](std::int64_t dim) {
    return dim == -1 || dim == static_cast<std::int64_t>(dimensions) - 1;
  };
  const auto along = static_cast<std::size_t>(candidate.along);
  const auto* const dim =
      along < node.operands.size() ? std::get_if<c10::IValue>(&node.operands[along]) : nullptr;
  if (dim == nullptr || !candidate.keeps) {
    return dim != nullptr && dim->isInt() && is_last(dim->toInt());
  }
  const auto* const keep = along + 1 < node.operands.size()
                               ? std::get_if<c10::IValue>(&node.operands[along + 1])
                               : nullptr;
  return dim->isIntList() && dim->toIntVector().size() == 1 &&
         is_last(dim->toIntVector().front()) && keep != nullptr && keep->isBool() && keep->toBool();
}

class Finder {
 public:
  Finder(const StageProgram& stage, const Chunk& chunk) : stage_(stage), chunk_(chunk) {
    for (std::size_t n = 0; n < chunk.nodes.size(); ++n) {
      for (const ValueId value : reads_of(chunk.nodes[n])) {
        if (value != kNoValue) {
          readers_[value].push_back(n);
        }
      }
      for (const ValueId value : chunk.nodes[n].results) {
        maker_[value] = n;
      }
      for (const ValueId value : chunk.nodes[n].writes) {
        written_.insert(stage.at(value).alias_set);
      }
    }
    leaves_.insert(chunk.outputs.begin(), chunk.outputs.end());
    if (maker_.contains(stage.loss)) {
      leaves_.insert(stage.loss);
    }
    for (const Chunk& other : stage.chunks) {
      if (&other != &chunk) {
        for (const Node& node : other.nodes) {
          const std::vector<ValueId> reads = reads_of(node);
          read_elsewhere_.insert(reads.begin(), reads.end());
        }
      }
    }
  }

  Regions run() {
    do {
      grow();
    } while (evict_views());
    Regions found;
    std::vector<Nodes> kept;
    for (const Nodes& nodes : regions_) {
      if (nodes.empty()) {
        continue;
      }
      if (parts_of(nodes) < 2) {
        for (const std::size_t n : nodes) {
          const auto declined = declined_.find(n);
          why_[n] = declined == declined_.end() ? "no neighbour computes over the same rows"
                                                : declined->second;
        }
      } else {
        kept.push_back(nodes);
      }
    }
    std::ranges::sort(kept, {}, [](const Nodes& nodes) { return *nodes.rbegin(); });
    for (const Nodes& nodes : kept) {
      found.all.push_back(region_of(nodes));
    }
    for (const auto& [node, why] : why_) {
      found.left.push_back({node, why});
    }
    return found;
  }

 private:
  /// The rows of the largest value that a node touches.
  [[nodiscard]] std::optional<Sizes> rows_of(const Node& node) const {
    const Sizes* largest = nullptr;
    std::int64_t elements = 0;
    const auto look = [&](ValueId id) {
      if (id != kNoValue) {
        const Sizes& sizes = stage_.at(id).sizes;
        const std::int64_t numel = c10::multiply_integers(sizes);
        if (sizes.size() >= 2 && numel > elements) {
          largest = &sizes;
          elements = numel;
        }
      }
    };
    std::ranges::for_each(reads_of(node), look);
    std::ranges::for_each(node.results, look);
    if (largest == nullptr || elements < kFewElements) {
      return std::nullopt;
    }
    return Sizes(largest->begin(), largest->end() - 1);
  }

  /// Why a node that looks like a candidate cannot be in any region; empty where it can.
  [[nodiscard]] std::string obstacle(const Node& node, const Candidate& looks) const {
    const std::optional<Sizes> rows = rows_of(node);
    if (!rows) {
      return "too few elements";
    }
    if (!node.writes.empty()) {
      return "it writes in place";
    }
    if (!node.grad_mode) {
      return "it runs without gradients";
    }
    for (const ValueId id : node.results) {
      if (id == kNoValue || stage_.at(id).hooks != kNoAttachment) {
        return "a hook is called with its gradient";
      }
      const Sizes& sizes = stage_.at(id).sizes;
      if (sizes.size() != rows->size() + 1 ||
          !std::equal(rows->begin(), rows->end(), sizes.begin())) {
        return "its result has other rows than what it reads";
      }
    }
    for (const auto& touched : {reads_of(node), node.results}) {
      for (const ValueId id : touched) {
        if (id != kNoValue && written_.contains(stage_.at(id).alias_set)) {
          return fmt::format("{} is written in place", value_name(stage_.at(id), id));
        }
      }
    }
    return is_along_last(looks, node, rows->size() + 1)
               ? ""
               : "it works along another dimension than the last, or drops it";
  }

  void grow() {
    regions_.clear();
    region_of_.clear();
    why_ = banned_;
    declined_.clear();
    for (std::size_t n = 0; n < chunk_.nodes.size(); ++n) {
      const Node& node = chunk_.nodes[n];
      const Candidate* const looks = candidate(node);
      if (looks == nullptr || banned_.contains(n)) {
        continue;
      }
      if (const std::string why = obstacle(node, *looks); !why.empty()) {
        why_[n] = why;
        continue;
      }
      join(n);
    }
  }

  void join(std::size_t n) {
    const Sizes rows = *rows_of(chunk_.nodes[n]);
    std::set<std::size_t> before;
    for (const ValueId value : reads_of(chunk_.nodes[n])) {
      const auto maker = maker_.find(value);
      if (value == kNoValue || maker == maker_.end()) {
        continue;
      }
      const auto region = region_of_.find(maker->second);
      if (region != region_of_.end() &&
          *rows_of(chunk_.nodes[*regions_[region->second].begin()]) == rows) {
        before.insert(region->second);
      }
    }
    std::vector<std::set<std::size_t>> choices;
    if (!before.empty()) {
      choices.push_back(before);
    }
    if (before.size() > 1) {
      for (auto one = before.rbegin(); one != before.rend(); ++one) {
        choices.push_back({*one});
      }
    }
    choices.emplace_back();
    std::string why;
    for (const std::set<std::size_t>& choice : choices) {
      Nodes together{n};
      for (const std::size_t region : choice) {
        together.insert(regions_[region].begin(), regions_[region].end());
      }
      why = fault_of(together);
      if (why.empty()) {
        for (const std::size_t region : choice) {
          regions_[region].clear();
        }
        for (const std::size_t member : together) {
          region_of_[member] = regions_.size();
        }
        regions_.push_back(std::move(together));
        return;
      }
      declined_.try_emplace(n, why);
    }
    why_[n] = why;
  }

  /// What of RG-1 and RG-2 the nodes together would break; empty for nothing.
  [[nodiscard]] std::string fault_of(const Nodes& nodes) const {
    const std::size_t first = *nodes.begin(), last = *nodes.rbegin();
    std::map<ValueId, int> inputs;  // how many parts of its gradient the nodes make
    for (const std::size_t n : nodes) {
      for (const ValueId made : chunk_.nodes[n].results) {
        for (const std::size_t reader : readers(made)) {
          if (!nodes.contains(reader) && reader < last) {
            return fmt::format("{} is read before the region could run", name(made));
          }
        }
      }
      for (const ValueId read : reads_of(chunk_.nodes[n])) {
        if (read != kNoValue && !is_made_in(read, nodes)) {
          inputs[read] += candidate(chunk_.nodes[n])->gradients_of_one;
        }
      }
    }
    for (const auto& [input, parts] : inputs) {
      if (!stage_.at(input).requires_grad) {
        continue;
      }
      std::size_t outside = leaves_.contains(input) ? 1 : 0;
      bool among = false;
      for (const std::size_t reader : readers(input)) {
        outside += nodes.contains(reader) ? 0 : 1;
        among = among || (!nodes.contains(reader) && reader > first && reader < last);
      }
      if ((among && outside + static_cast<std::size_t>(parts) > 2) ||
          (parts > 1 && read_elsewhere_.contains(input))) {
        return fmt::format("gradients of {} would be added in another order", name(input));
      }
    }
    return "";
  }

  /// A view whose result is read outside would have other strides there.
  bool evict_views() {
    bool any = false;
    for (const auto& [n, region] : region_of_) {
      if (!candidate(chunk_.nodes[n])->view) {
        continue;
      }
      for (const ValueId made : chunk_.nodes[n].results) {
        const bool escapes =
            leaves_.contains(made) || std::ranges::any_of(readers(made), [&](std::size_t reader) {
              return !regions_[region].contains(reader);
            });
        if (escapes && banned_.emplace(n, "its view is read outside of the region").second) {
          any = true;
        }
      }
    }
    return any;
  }

  /// How many operators below autograd there are at least.
  [[nodiscard]] int parts_of(const Nodes& nodes) const {
    int parts = 0;
    for (const std::size_t n : nodes) {
      const Candidate& looks = *candidate(chunk_.nodes[n]);
      parts += looks.view ? 0 : looks.gradients_of_one;
    }
    return parts;
  }

  [[nodiscard]] Region region_of(const Nodes& nodes) const {
    Region region{
        .nodes = {nodes.begin(), nodes.end()}, .inputs = {}, .outputs = {}, .handed_on = {}};
    std::map<ValueId, int> parts;
    for (const std::size_t n : nodes) {
      for (const ValueId read : reads_of(chunk_.nodes[n])) {
        if (read != kNoValue && !is_made_in(read, nodes)) {
          if (!parts.contains(read)) {
            region.inputs.push_back(read);
          }
          parts[read] += candidate(chunk_.nodes[n])->gradients_of_one;
        }
      }
      for (const ValueId made : chunk_.nodes[n].results) {
        if (is_read_behind(made, nodes)) {
          region.outputs.push_back(made);
        }
      }
    }
    for (const ValueId input : region.inputs) {
      if (stage_.at(input).requires_grad && parts[input] > 1 && is_read_behind(input, nodes)) {
        region.handed_on.push_back(input);
      }
    }
    return region;
  }

  [[nodiscard]] bool is_read_behind(ValueId value, const Nodes& nodes) const {
    return leaves_.contains(value) || std::ranges::any_of(readers(value), [&](std::size_t reader) {
             return reader > *nodes.rbegin();
           });
  }

  [[nodiscard]] bool is_made_in(ValueId value, const Nodes& nodes) const {
    const auto maker = maker_.find(value);
    return maker != maker_.end() && nodes.contains(maker->second);
  }

  [[nodiscard]] const std::vector<std::size_t>& readers(ValueId value) const {
    static const std::vector<std::size_t> kNone;
    const auto found = readers_.find(value);
    return found == readers_.end() ? kNone : found->second;
  }

  [[nodiscard]] std::string name(ValueId value) const {
    return value_name(stage_.at(value), value);
  }

  const StageProgram& stage_;
  const Chunk& chunk_;
  std::map<ValueId, std::vector<std::size_t>> readers_;  // ascending, once per use
  std::map<ValueId, std::size_t> maker_;
  std::set<int> written_;             // alias sets
  std::set<ValueId> leaves_;          // of the chunk: gradients arrive before all others
  std::set<ValueId> read_elsewhere_;  // by other chunks, whose sums come first
  std::vector<Nodes> regions_;        // some empty
  std::map<std::size_t, std::size_t> region_of_;
  std::map<std::size_t, std::string> banned_, why_;
  std::map<std::size_t, std::string> declined_;  // why a node did not join those before it
};

/// A literal with all its digits.
void write_literal(std::ostringstream& text, const c10::IValue& literal) {
  if (literal.isDouble()) {
    text << fmt::format("{:a}", literal.toDouble());
  } else if (literal.isDoubleList()) {
    for (const double number : literal.toDoubleVector()) {
      text << fmt::format("{:a},", number);
    }
  } else if (literal.isTensor()) {
    text << "none";
  } else {
    text << literal;
  }
}

}  // namespace

Regions regions_of(const StageProgram& stage, const Chunk& chunk) {
  return Finder(stage, chunk).run();
}

std::string names_of(const Chunk& chunk, const Region& region) {
  std::string names;
  for (const std::size_t n : region.nodes) {
    const std::string& name = chunk.nodes[n].name;
    names += (names.empty() ? "" : " ") + name.substr(name.find(':') + 2);
  }
  return names;
}

std::string signature_of(const Chunk& chunk, const Region& region) {
  std::map<ValueId, std::size_t> numbers;
  const auto number = [&](ValueId value) {
    return value == kNoValue ? -1
                             : static_cast<std::int64_t>(
                                   numbers.try_emplace(value, numbers.size()).first->second);
  };
  for (const ValueId input : region.inputs) {
    (void)number(input);
  }
  std::ostringstream text;
  for (const std::size_t n : region.nodes) {
    const Node& node = chunk.nodes[n];
    text << operator_name(node);
    if (node.autocast.enabled) {
      text << " autocast " << at::toString(node.autocast.dtype);
    }
    text << '(';
    for (const Operand& operand : node.operands) {
      if (const auto* value = std::get_if<ValueId>(&operand)) {
        text << '%' << number(*value);
      } else if (const auto* list = std::get_if<ValueList>(&operand)) {
        for (const ValueId v : list->values) {
          text << '%' << number(v) << '+';
        }
      } else if (const auto* literal = std::get_if<c10::IValue>(&operand)) {
        write_literal(text, *literal);
      } else {
        text << (std::holds_alternative<StageDevice>(operand) ? "device" : "generator");
      }
      text << ';';
    }
    text << ")->";
    for (const ValueId result : node.results) {
      text << number(result) << ',';
    }
  }
  for (const auto* values : {&region.outputs, &region.handed_on}) {
    text << '|';
    for (const ValueId value : *values) {
      text << number(value) << ',';
    }
  }
  return text.str();
}

}  // namespace stagecraft
