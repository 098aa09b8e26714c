#include "stagecraft/compiler/stage/unlike_regions.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

/// RegionPair compares a divided chunk of two captures, operator by operator.
class RegionPair {
 public:
  RegionPair(const StageProgram& a, const StageProgram& b, std::size_t chunk)
      : a_(a), b_(b), of_a_(a.chunks[chunk]), of_b_(b.chunks[chunk]) {}

  [[nodiscard]] std::string difference() {
    if (std::string found = of_borders(of_a_.inputs, of_b_.inputs, "reads"); !found.empty()) {
      return found;
    }
    for (std::size_t n = 0; n < std::min(of_a_.nodes.size(), of_b_.nodes.size()); ++n) {
      if (std::string found = of_operators(of_a_.nodes[n], of_b_.nodes[n]); !found.empty()) {
        return found;
      }
    }
    if (of_a_.nodes.size() != of_b_.nodes.size()) {
      return fmt::format(
          "has {} and {} operators for them", of_a_.nodes.size(), of_b_.nodes.size());
    }
    return of_borders(of_a_.outputs, of_b_.outputs, "makes");
  }

 private:
  using Values = std::vector<ValueId>;

  /// Inputs are values that other chunks make: here they become known.
  [[nodiscard]] std::string of_borders(const Values& a, const Values& b, std::string_view does) {
    if (a.size() != b.size()) {
      return fmt::format("{} {} and {} values for them", does, a.size(), b.size());
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      const Value& here = a_.at(a[i]);
      const Value& there = b_.at(b[i]);
      auto alike = there.sizes;
      if (alike.size() > 1 && here.sizes.size() > 1) {
        alike[1] = here.sizes[1];
      }
      if (alike != here.sizes || here.dtype != there.dtype) {
        return fmt::format("{} values of sizes [{}] and [{}] for them, or of other types",
                           does,
                           fmt::join(here.sizes, ", "),
                           fmt::join(there.sizes, ", "));
      }
      if (!meet(a[i], b[i])) {
        return fmt::format("{} its values in another order", does);
      }
    }
    return {};
  }

  [[nodiscard]] std::string of_operators(const Node& a, const Node& b) {
    if (operator_name(a) != operator_name(b) || a.autocast != b.autocast ||
        a.grad_mode != b.grad_mode || a.answer != b.answer) {
      return fmt::format(
          "calls {} where it calls {} for the others", operator_name(a), operator_name(b));
    }
    const bool same_operands = std::ranges::equal(
        a.operands, b.operands, [this](const Operand& x, const Operand& y) { return same(x, y); });
    if (!same_operands || !same(a.results, b.results)) {
      return fmt::format("calls {} with other numbers or values for some of them",
                         operator_name(a));
    }
    return {};
  }

  [[nodiscard]] bool same(const Operand& a, const Operand& b) {
    if (a.index() != b.index()) {
      return false;
    }
    if (const auto* const value = std::get_if<ValueId>(&a)) {
      return meet(*value, std::get<ValueId>(b));
    }
    if (const auto* const list = std::get_if<ValueList>(&a)) {
      return same(list->values, std::get<ValueList>(b).values);
    }
    if (const auto* const number = std::get_if<c10::IValue>(&a)) {
      const auto& other = std::get<c10::IValue>(b);
      return number->tagKind() == other.tagKind() && *number == other;
    }
    return true;
  }

  [[nodiscard]] bool same(const Values& a, const Values& b) {
    return std::ranges::equal(a, b, [this](ValueId x, ValueId y) { return meet(x, y); });
  }

  [[nodiscard]] static bool same(const at::Tensor& a, const at::Tensor& b) {
    return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && at::equal(a, b);
  }

  /// Returns whether two values mean the same. Values that operators make or read for the first
  /// time do so from then on.
  [[nodiscard]] bool meet(ValueId a, ValueId b) {
    if (a == kNoValue || b == kNoValue) {
      return a == b;
    }
    const Value& here = a_.at(a);
    const Value& there = b_.at(b);
    if (here.kind != there.kind) {
      return false;
    }
    switch (here.kind) {
      case ValueKind::Parameter:
      case ValueKind::Buffer:
        return here.position == there.position;
      case ValueKind::Constant:
        return same(constant(a_, a), constant(b_, b));
      default:
        return met_.try_emplace(a, b).first->second == b &&
               met_back_.try_emplace(b, a).first->second == a;
    }
  }

  [[nodiscard]] static const at::Tensor& constant(const StageProgram& stage, ValueId value) {
    return std::ranges::find(stage.constants, value, &StageConstant::value)->tensor;
  }

  const StageProgram& a_;
  const StageProgram& b_;
  const Chunk& of_a_;
  const Chunk& of_b_;
  std::map<ValueId, ValueId> met_, met_back_;  // from a to b, and from b to a
};

}  // namespace

std::string unlike_regions(const StageProgram& a, const StageProgram& b) {
  for (std::size_t c = 0; c < a.chunks.size(); ++c) {
    if (a.chunks[c].divided) {
      if (std::string found = RegionPair(a, b, c).difference(); !found.empty()) {
        return found;
      }
    }
  }
  return {};
}

}  // namespace stagecraft
