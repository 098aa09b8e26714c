/// Graph: the operators one forward (and its loss) ran, in order, with the values between them.
///
/// Made by capture, cut by partition; plain data afterwards. Operators are named, not bound: a
/// graph can be printed, compared and carried to another process.
///
/// GR-1: nodes stand in the order in which they ran, so every operand is made before its use.
/// GR-2: a value is named by the tensor that held it; an operator that writes in place returns the
///      value it wrote.
/// GR-3: an operator whose operands are all constants is not recorded: what it made is a constant,
///       until a recorded operator writes it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/markers.h"
#include "stagecraft/compiler/memory_order.h"
#include "stagecraft/compiler/named_tensor.h"

namespace stagecraft {

using ValueId = StrongId<struct ValueName>;
inline constexpr ValueId kNoValue{-1};

enum class ValueKind : std::uint8_t { Input, Label, Parameter, Buffer, Constant, Computed };

class CustomFunction;
class TensorHooks;

/// Code of the user's program that replays call. It exists in this process alone: elsewhere its
/// name says what is missing.
using Attachment =
    std::variant<std::shared_ptr<const CustomFunction>, std::shared_ptr<const TensorHooks>>;
inline constexpr int kNoAttachment = -1;

struct Value {
  ValueKind kind = ValueKind::Computed;
  /// Which input, label, parameter, buffer or constant; the producing node of a computed value.
  int position = 0;
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
  bool requires_grad = false;
  int alias_set = 0;          ///< values with equal sets share storage
  int hooks = kNoAttachment;  ///< which attachment is called with the value's gradient
  MemoryOrder order;          ///< in which it comes from the driver and crosses borders
};

/// What stands in for a literal device: the device of the stage that runs the operator.
struct StageDevice {
  friend bool operator==(const StageDevice&, const StageDevice&) = default;
};
/// What stands in for a generator: one seeded by (seed, step, microbatch, the node's number among
/// random operators).
struct StageGenerator {
  friend bool operator==(const StageGenerator&, const StageGenerator&) = default;
};
struct ValueList {
  std::vector<ValueId> values;  ///< kNoValue where an optional tensor is absent
  bool optional_elements = false;
};
using Operand = std::variant<c10::IValue, ValueId, ValueList, StageDevice, StageGenerator>;

struct Autocast {
  bool enabled = false;
  at::ScalarType dtype = at::kBFloat16;

  friend bool operator==(const Autocast&, const Autocast&) = default;
};

struct Node {
  std::string name;      ///< "aten::linear"
  std::string overload;  ///< "" or "Tensor"
  std::vector<Operand> operands;
  /// All returned tensors, lists flattened; kNoValue where undefined.
  std::vector<ValueId> results;
  std::vector<ValueId> writes;          ///< values changed in place, statistics buffers included
  std::vector<Annotation> annotations;  ///< outermost first
  Autocast autocast;
  bool grad_mode = true;
  int random_index = -1;  ///< number among the random operators of the whole graph, or -1
  /// The answer the module got from an operator that compares (and returns no tensor): every replay
  /// must get it too.
  std::optional<bool> answer;
  /// kFunctionNode: which attachment. Its operands are three lists: what gradients flow to, what
  /// the forward saved, and what it returned; its results are the latter, joined to autograd.
  int function = kNoAttachment;
};

/// Name of a node that is no operator but an application of a custom function.
inline constexpr std::string_view kFunctionNode = "stagecraft::custom_function";

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<NamedTensor> parameters;  ///< in the module's order
  std::vector<NamedTensor> buffers;
  std::vector<at::Tensor> constants;
  std::vector<Attachment> attachments;
  std::vector<ValueId> inputs, labels;
  std::vector<ValueId> outputs;  ///< what forward returned
  ValueId loss = kNoValue;
  std::vector<ValueId> metrics;  ///< of an evaluation

  [[nodiscard]] const Value& at(ValueId id) const { return values[id.index()]; }
};

/// "custom function Reverse", "2 hooks on w:a.weight".
[[nodiscard]] const std::string& name_of(const Attachment& attachment);

/// Every value a node reads, once per use.
[[nodiscard]] std::vector<ValueId> reads_of(const Node& node);

/// "aten::add.Tensor", for messages and the printed form.
[[nodiscard]] std::string operator_name(const Node& node);

/// The name of the stage a node was marked with, or "" outside all markers.
[[nodiscard]] std::string stage_marker(const Node& node);

/// Whether the loss made the node, not the module's forward.
[[nodiscard]] bool in_loss(const Node& node);

/// One line per operator with its stage, operands, results and shapes.
[[nodiscard]] std::string to_string(const Graph& graph);

/// "%12", "input0": how a value is called that has no name in the module.
[[nodiscard]] std::string value_name(const Value& value, ValueId id);

/// "%12", "w:head.weight", "input0": how a value is called in the printed form.
[[nodiscard]] std::string value_name(const Graph& graph, ValueId id);

template <class V>
decltype(auto) visit_fields(Value& m, V&& v) {
  return v(m.kind, m.position, m.sizes, m.dtype, m.requires_grad, m.alias_set, m.hooks, m.order);
}
template <class V>
decltype(auto) visit_fields(StageDevice&, V&& v) {
  return v();
}
template <class V>
decltype(auto) visit_fields(StageGenerator&, V&& v) {
  return v();
}
template <class V>
decltype(auto) visit_fields(ValueList& m, V&& v) {
  return v(m.values, m.optional_elements);
}
template <class V>
decltype(auto) visit_fields(Autocast& m, V&& v) {
  return v(m.enabled, m.dtype);
}
template <class V>
decltype(auto) visit_fields(Annotation& m, V&& v) {
  return v(m.tag, m.name, m.index);
}
template <class V>
decltype(auto) visit_fields(Node& m, V&& v) {
  return v(m.name,
           m.overload,
           m.operands,
           m.results,
           m.writes,
           m.annotations,
           m.autocast,
           m.grad_mode,
           m.random_index,
           m.answer,
           m.function);
}

}  // namespace stagecraft
