/// Graph holds the operators that one forward (and its loss) ran, in order, with the values between
/// them.
///
/// Capture makes it and partition cuts it; afterwards it is plain data. Operators are named, not
/// bound, so a graph can be printed, compared and sent to another process.
///
/// GR-1: nodes are in the order in which they ran, so every operand is made before its use.
/// GR-2: a value is identified by the tensor that held it. An operator that writes in place returns
///       the value that it wrote.
/// GR-3: an operator whose operands are all constants is not recorded. Its result is a constant
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
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft {

using ValueId = StrongId<struct ValueName>;
inline constexpr ValueId kNoValue{-1};

enum class ValueKind : std::uint8_t { Input, Label, Parameter, Buffer, Constant, Computed };

class CustomFunction;
class DriverCode;
class TensorHooks;

/// Attachment is code of the user's program that replays call. It exists in this process alone.
/// Elsewhere its name says what is missing.
using Attachment = std::variant<std::shared_ptr<const CustomFunction>,
                                std::shared_ptr<const TensorHooks>,
                                std::shared_ptr<const DriverCode>>;
inline constexpr int kNoAttachment = -1;

struct Value {
  ValueKind kind = ValueKind::Computed;
  /// The number of the input, label, parameter, buffer or constant; the producing node for a
  /// computed value.
  int position = 0;
  std::vector<std::int64_t> sizes;
  at::ScalarType dtype = at::kFloat;
  bool requires_grad = false;
  int alias_set = 0;          ///< values with equal sets share storage
  int hooks = kNoAttachment;  ///< the attachment that is called with the value's gradient
  MemoryOrder order;          ///< the order in which it comes from the driver and crosses borders
};

/// StageDevice replaces a literal device: it means the device of the stage that runs the operator.
struct StageDevice {
  friend bool operator==(const StageDevice&, const StageDevice&) = default;
};
/// StageGenerator replaces a generator: it means one that is seeded by (seed, step, microbatch, the
/// node's number among random operators).
struct StageGenerator {
  friend bool operator==(const StageGenerator&, const StageGenerator&) = default;
};
struct ValueList {
  std::vector<ValueId> values;  ///< kNoValue if an optional tensor is absent
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
  /// All returned tensors, with lists flattened; kNoValue for undefined ones.
  std::vector<ValueId> results;
  std::vector<ValueId> writes;          ///< values changed in place, statistics buffers included
  std::vector<Annotation> annotations;  ///< outermost first
  Autocast autocast;
  bool grad_mode = true;
  int random_index = -1;  ///< number among the random operators of the whole graph, or -1
  /// The answer that the module got from an operator that compares (and returns no tensor). Every
  /// replay must get the same one.
  std::optional<bool> answer;
  /// For kFunctionNode and kDriverOperator: the number of the attachment. The operands of the first
  /// are three lists: the tensors that gradients flow to, the tensors that the forward saved, and
  /// its return values. Its results are the return values, joined to autograd.
  int function = kNoAttachment;
};

/// Names a node that is not an operator but an application of a custom function.
inline constexpr std::string_view kFunctionNode = "stagecraft::custom_function";
/// Names the operator that stands for code of the driver (driver_code.h): (name, values) ->
/// results.
inline constexpr std::string_view kDriverOperator = "stagecraft::on_driver";

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<NamedTensor> parameters;  ///< in the module's order
  std::vector<NamedTensor> buffers;
  std::vector<at::Tensor> constants;
  std::vector<Attachment> attachments;
  std::vector<ValueId> inputs, labels;
  std::vector<ValueId> outputs;  ///< the return values of forward
  ValueId loss = kNoValue;
  std::vector<ValueId> metrics;  ///< of an evaluation

  [[nodiscard]] const Value& at(ValueId id) const { return values[id.index()]; }
};

/// Returns "custom function Reverse", "2 hooks on w:a.weight".
[[nodiscard]] const std::string& name_of(const Attachment& attachment);

/// Returns the bytes of one microbatch of a value.
[[nodiscard]] std::int64_t bytes_of(const Value& value);

/// Returns every value that a node reads, once per use.
[[nodiscard]] std::vector<ValueId> reads_of(const Node& node);

/// Returns "aten::add.Tensor", for messages and the printed form.
[[nodiscard]] std::string operator_name(const Node& node);

/// Returns the names of all operators, in order.
[[nodiscard]] std::vector<std::string> operator_names(const Graph& graph);

/// Returns the name of the stage that a node was marked with, or "" outside all markers.
[[nodiscard]] std::string stage_marker(const Node& node);

/// Returns whether the loss made the node, not the module's forward.
[[nodiscard]] bool in_loss(const Node& node);

/// Returns whether the node is code of the driver.
[[nodiscard]] bool is_driver_code(const Node& node);

/// Returns the values of an evaluation's graph that its stages send to the driver: the module's
/// outputs if it has no loss, else the metrics.
[[nodiscard]] const std::vector<ValueId>& results_of(const Graph& evaluation);

/// Returns one line per operator with its stage, operands, results and shapes.
[[nodiscard]] std::string to_string(const Graph& graph);

/// Returns "%12", "input0": the printed name of a value that has no name in the module.
[[nodiscard]] std::string value_name(const Value& value, ValueId id);

/// Returns "%12", "w:head.weight", "input0": the printed name of a value.
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
