#include "stagecraft/compiler/stage/verify_stage.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <variant>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/allowed_operators.h"
#include "stagecraft/compiler/libtorch/argument_type.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/native/native_code.h"

namespace stagecraft {
namespace {

/// The most bytes of one value. Sums of several values do not overflow.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 48U;
constexpr std::size_t kMostDimensions = 64;

/// Fits decides whether an operator takes an operand for an argument of its schema.
class Fits {
 public:
  explicit Fits(const c10::Argument& argument)
      : whole_(*argument.type()),
        type_(without_optional(whole_)),
        real_(*argument.real_type()),
        optional_(whole_.kind() == c10::TypeKind::OptionalType) {}

  bool operator()(ValueId) const { return type_.kind() == c10::TypeKind::TensorType; }
  bool operator()(const ValueList& list) const {
    return is_list(list.optional_elements ? c10::OptionalType::ofTensor()
                                          : c10::TypePtr(c10::TensorType::get()));
  }
  bool operator()(StageDevice) const { return type_.kind() == c10::TypeKind::DeviceObjType; }
  bool operator()(StageGenerator) const { return type_.kind() == c10::TypeKind::GeneratorType; }
  bool operator()(const c10::IValue& literal) const {
    if (literal.isNone()) {
      return optional_;
    }
    if (literal.isTensor()) {
      return type_.kind() == c10::TypeKind::TensorType && !literal.toTensor().defined();
    }
    const bool number = type_.kind() == c10::TypeKind::NumberType;
    if (literal.isBool()) {
      return number || type_.kind() == c10::TypeKind::BoolType;
    }
    if (literal.isInt()) {
      return number ||
             (type_.kind() == c10::TypeKind::IntType && may_be_number(real_, literal.toInt()));
    }
    if (literal.isDouble()) {
      return number || type_.kind() == c10::TypeKind::FloatType;
    }
    if (literal.isComplexDouble()) {
      return number || type_.kind() == c10::TypeKind::ComplexType;
    }
    if (literal.isString()) {
      return type_.kind() == c10::TypeKind::StringType;
    }
    return literal.isList() && is_list(literal.toList().elementType());
  }

 private:
  [[nodiscard]] bool is_list(const c10::TypePtr& of) const {
    return type_.kind() == c10::TypeKind::ListType &&
           *type_.expectRef<c10::ListType>().getElementType() == *of;
  }

  const c10::Type& whole_;
  const c10::Type& type_;
  const c10::Type& real_;
  bool optional_;
};

class StageCheck {
 public:
  explicit StageCheck(const StageProgram& stage) : stage_(stage) {}

  std::vector<std::string> run() {
    check_values();
    if (stage_.chunks.empty()) {
      fault("it has no chunk");
    }
    check_state();
    check_borders();
    check_made();
    if (faults_.empty()) {  // the checks below look values up
      check_facts();
    }
    return std::move(faults_);
  }

 private:
  template <class... Args>
  void fault(fmt::format_string<Args...> what, Args&&... args) {
    if (faults_.size() < kMostFaults) {
      faults_.push_back(fmt::format(
          "stage {}: {}", stage_.id.value, fmt::format(what, std::forward<Args>(args)...)));
    }
  }

  [[nodiscard]] bool has(ValueId id) const { return stage_.values.contains(id); }

  void require(ValueId id, std::string_view what) {
    if (!has(id)) {
      fault("{} is %{}, but the stage has no facts of it (SP-3)", what, id.value);
    }
  }

  template <class Kind>
  [[nodiscard]] bool has_attachment(int number) const {
    return number >= 0 && static_cast<std::size_t>(number) < stage_.attachments.size() &&
           std::holds_alternative<std::shared_ptr<const Kind>>(
               stage_.attachments[static_cast<std::size_t>(number)]);
  }

  static std::int64_t bytes_or_nothing(const Value& value) {
    auto bytes = static_cast<std::int64_t>(c10::elementSize(value.dtype));
    for (const std::int64_t size : value.sizes) {
      if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes) || bytes > kMostBytes) {
        return -1;
      }
    }
    return bytes;
  }

  void check_values() {
    for (const auto& [id, value] : stage_.values) {
      if (id.value < 0) {
        fault("no value is numbered {}", id.value);
      }
      if (value.dtype < at::ScalarType::Byte || value.dtype >= at::ScalarType::Undefined ||
          c10::isQIntType(value.dtype) || bytes_or_nothing(value) < 0) {
        fault("the shape or type of %{} is impossible", id.value);
      }
      if (!is_memory_order(value.order, value.sizes.size())) {
        fault("the memory order of %{} is not an order of its {} dimensions",
              id.value,
              value.sizes.size());
      }
      if (value.hooks != kNoAttachment && !has_attachment<TensorHooks>(value.hooks)) {
        fault("%{} has hooks {}, which did not come with it", id.value, value.hooks);
      }
    }
    if (stage_.loss != kNoValue) {
      require(stage_.loss, "its loss");
    }
    const auto in_range = [](std::int64_t bytes) { return bytes >= 0 && bytes <= kMostBytes; };
    if (!in_range(stage_.saved_bytes) || !in_range(stage_.transient_bytes)) {
      fault("its measured bytes, {} and {}, are impossible",
            stage_.saved_bytes,
            stage_.transient_bytes);
    }
    std::int64_t room = kMostBytes;  // for all chunks together, so that their sum does not overflow
    for (const Chunk& chunk : stage_.chunks) {
      if (chunk.replayed_bytes < 0 || chunk.replayed_bytes > room ||
          (chunk.replayed_bytes > 0 && !chunk.recompute)) {
        fault("the {} bytes that a chunk replays are impossible", chunk.replayed_bytes);
        break;
      }
      room -= chunk.replayed_bytes;
    }
  }

  void check_state() {
    for (const StageParameter& parameter : stage_.parameters) {
      require(parameter.value, "a parameter");
      state_.insert(parameter.value);
    }
    for (const StageBuffer& buffer : stage_.buffers) {
      require(buffer.value, "a buffer");
      state_.insert(buffer.value);
    }
    for (const StageConstant& constant : stage_.constants) {
      require(constant.value, "a constant");
      state_.insert(constant.value);
      if (has(constant.value) &&
          (!constant.tensor.defined() ||
           constant.tensor.sizes() != at::IntArrayRef(stage_.at(constant.value).sizes) ||
           constant.tensor.scalar_type() != stage_.at(constant.value).dtype)) {
        fault("the constant %{} is another tensor than its facts say", constant.value.value);
      }
    }
  }

  void check_borders() {
    for (const StageInput& input : stage_.inputs) {
      require(input.value, "an input");
      given_.insert(input.value);
      if (input.position < 0) {
        fault("its input %{} has position {}", input.value.value, input.position);
      }
    }
    for (const StageOutput& output : stage_.outputs) {
      require(output.value, "an output");
      if (output.consumers.size() != output.gradient_from.size()) {
        fault("its output %{} has {} consumers, and {} entries say whether they send a gradient",
              output.value.value,
              output.consumers.size(),
              output.gradient_from.size());
      }
      if (std::ranges::any_of(output.kept, [](std::int32_t number) { return number < 0; })) {
        fault("its output %{} is kept under a number below 0", output.value.value);
      }
    }
  }

  /// Checks that every value that a chunk reads exists by then.
  void check_made() {
    std::set<ValueId> passed_on;  // by earlier chunks
    for (const Chunk& chunk : stage_.chunks) {
      std::set<ValueId> known = state_;
      for (const ValueId input : chunk.inputs) {
        require(input, "an input of a chunk");
        if (!given_.contains(input) && !passed_on.contains(input)) {
          fault("a chunk reads %{}, which is no input, and which no earlier chunk makes",
                input.value);
        }
        known.insert(input);
      }
      for (const Node& node : chunk.nodes) {
        check_node(node, known);
      }
      for (const ValueId output : chunk.outputs) {
        if (!known.contains(output)) {
          fault("a chunk passes on %{}, which it does not have", output.value);
        }
        passed_on.insert(output);
      }
    }
    for (const StageOutput& output : stage_.outputs) {
      if (!passed_on.contains(output.value)) {
        fault("no chunk makes its output %{}", output.value.value);
      }
    }
  }

  void check_node(const Node& node, std::set<ValueId>& known) {
    for (const ValueId read : all_reads(node)) {
      if (!known.contains(read)) {
        fault("{} reads %{}, which is not made by then", operator_name(node), read.value);
      }
    }
    for (const ValueId written : node.writes) {
      require(written, "a value that an operator writes");
    }
    for (const ValueId result : node.results) {
      if (result != kNoValue) {
        require(result, "a value that an operator makes");
        known.insert(result);
      }
    }
    node.function == kNoAttachment ? check_operator(node) : check_function(node);
  }

  /// Returns all values that the node reads, and kNoValue if an element of a list is absent where
  /// none may be.
  static std::vector<ValueId> all_reads(const Node& node) {
    std::vector<ValueId> reads = reads_of(node);
    for (const Operand& operand : node.operands) {
      const auto* list = std::get_if<ValueList>(&operand);
      if (list != nullptr && !list->optional_elements && node.function == kNoAttachment &&
          std::ranges::find(list->values, kNoValue) != list->values.end()) {
        reads.push_back(kNoValue);
      }
    }
    return reads;
  }

  void check_function(const Node& node) {
    const auto is_list = [](const Operand& o) { return std::holds_alternative<ValueList>(o); };
    if (is_driver_code(node)) {
      if (!has_attachment<DriverCode>(node.function) || node.operands.size() != 2 ||
          !is_list(node.operands[1])) {
        fault("{} calls the code {}, which did not come with it, or not with a name and a list",
              operator_name(node),
              node.function);
      }
      return;
    }
    if (!has_attachment<CustomFunction>(node.function) || node.operands.size() != 3 ||
        !std::ranges::all_of(node.operands, is_list)) {
      fault("{} calls the function {}, which did not come with it, or not with three lists",
            operator_name(node),
            node.function);
    }
  }

  void check_operator(const Node& node) {
    const auto op = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
    if (!op) {
      fault(
          "the operator {} is not known in this process: load the library that registers it, or "
          "let the program be its own worker",
          operator_name(node));
      return;
    }
    if (const auto refusal = operator_refusal(op->operator_name(), ProgramOrigin::OtherProcess)) {
      fault("{}", *refusal);
      return;
    }
    const std::vector<c10::Argument>& arguments = op->schema().arguments();
    if (op->schema().is_vararg() || op->schema().is_varret() ||
        arguments.size() != node.operands.size()) {
      fault("{} takes {} operands, and gets {}",
            operator_name(node),
            arguments.size(),
            node.operands.size());
      return;
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!std::visit(Fits(arguments[i]), node.operands[i])) {
        fault("{} takes {} for {}, and gets something else",
              operator_name(node),
              arguments[i].real_type()->str(),
              arguments[i].name());
      }
    }
    if (node.name == kNativeOperator) {
      check_native(node);
    }
    check_results(node, op->schema().returns());
  }

  void check_native(const Node& node) {
    const bool has_lists =
        std::all_of(node.operands.begin() + 1, node.operands.end() - 1, [](const Operand& operand) {
          return std::holds_alternative<ValueList>(operand);
        });
    if (!has_lists || std::ranges::find(node.results, kNoValue) != node.results.end()) {
      fault("{} needs lists of values, and each of its results", operator_name(node));
    }
    const auto* name = std::get_if<c10::IValue>(&node.operands.front());
    const std::string missing =
        missing_native(name != nullptr && name->isString() ? name->toStringRef() : "");
    if (!missing.empty()) {
      fault("{}", missing);
    }
  }

  /// Checks the number of results. The length of a list is known only in a run.
  void check_results(const Node& node, const std::vector<c10::Argument>& returns) {
    const auto of_kind = [&](c10::TypeKind kind) {
      return std::ranges::count_if(returns, [&](const c10::Argument& r) {
        return without_optional(*r.type()).kind() == kind;
      });
    };
    const auto tensors = of_kind(c10::TypeKind::TensorType);
    if (of_kind(c10::TypeKind::ListType) == 0 && tensors != std::ssize(node.results)) {
      fault("{} makes {} tensors, and the stage keeps {}",
            operator_name(node),
            tensors,
            node.results.size());
    }
    if (node.answer &&
        (returns.size() != 1 || returns[0].type()->kind() != c10::TypeKind::BoolType)) {
      fault("{} gives no answer, but an answer is expected", operator_name(node));
    }
  }

  /// Checks that values that are trained, kept or sent back have a type and form for it.
  void check_facts() {
    const auto differentiable = [](const Value& value) {
      return c10::isFloatingType(value.dtype) || c10::isComplexType(value.dtype);
    };
    for (const StageParameter& parameter : stage_.parameters) {
      const Value& facts = stage_.at(parameter.value);
      if ((facts.requires_grad && !differentiable(facts)) ||
          (parameter.trained && !facts.requires_grad)) {
        fault("its parameter \"{}\" is to be trained, but has no gradient", parameter.name);
      }
    }
    for (const StageInput& input : stage_.inputs) {
      if (input.owes_gradient && !differentiable(stage_.at(input.value))) {
        fault("its input %{} owes a gradient, but its type has none", input.value.value);
      }
    }
    for (const StageBuffer& buffer : stage_.buffers) {
      check_strides(buffer, stage_.at(buffer.value));
    }
  }

  void check_strides(const StageBuffer& buffer, const Value& facts) {
    bool good =
        buffer.strides.size() == facts.sizes.size() && facts.sizes.size() <= kMostDimensions;
    for (std::size_t d = 0; good && d < facts.sizes.size(); ++d) {
      std::int64_t elements = 0;
      good = buffer.strides[d] >= 0 &&
             !__builtin_mul_overflow(facts.sizes[d], buffer.strides[d], &elements) &&
             elements <= kMostBytes / static_cast<std::int64_t>(kMostDimensions);
    }
    if (!good) {
      fault("its buffer \"{}\" has strides that do not fit its shape", buffer.name);
    }
  }

  const StageProgram& stage_;
  std::set<ValueId> state_;  // parameters, buffers, constants
  std::set<ValueId> given_;  // inputs
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> verify(const StageProgram& stage) {
  return StageCheck(stage).run();
}

}  // namespace stagecraft
