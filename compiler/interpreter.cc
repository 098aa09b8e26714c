#include "stagecraft/compiler/interpreter.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/custom_function.h"
#include "stagecraft/compiler/tensor_hooks.h"

namespace stagecraft {
namespace {

constexpr int kAbsent = -1;

struct LocalList {
  std::vector<int> locals;
  bool optional_elements = false;
};
struct Generator {};
using Argument = std::variant<c10::IValue, int, LocalList, Generator>;

struct Call {
  std::optional<c10::OperatorHandle> op;           ///< or:
  std::shared_ptr<const CustomFunction> function;  ///< with three lists of arguments
  std::vector<Argument> arguments;
  std::vector<int> results;
  std::vector<int> last_uses;  ///< locals nobody reads after this call
  bool grad_mode = true;
  Autocast autocast;
  int random_index = -1;
  std::optional<bool> answer;
  std::vector<std::pair<int, std::shared_ptr<const TensorHooks>>> hooks;  ///< on results
  const Node* node = nullptr;
};

/// Autocast as recorded, for the calls that want it. The cast cache is process-wide and outlives
/// optimizer steps, so it stays off.
class AutocastGuard {
 public:
  AutocastGuard()
      : enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
        cache_(at::autocast::is_autocast_cache_enabled()),
        dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~AutocastGuard() {
    at::autocast::set_autocast_enabled(at::kCPU, enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, dtype_);
    at::autocast::set_autocast_cache_enabled(cache_);
  }
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

  static void set(const Autocast& state) {
    at::autocast::set_autocast_enabled(at::kCPU, state.enabled);
    at::autocast::set_autocast_dtype(at::kCPU, state.dtype);
  }

 private:
  bool enabled_, cache_;
  at::ScalarType dtype_;
};

}  // namespace

struct StageInterpreter::Impl {
  const Graph& graph;
  const StageProgram& program;
  std::unordered_map<ValueId, int> locals;
  std::vector<Call> calls;
  std::vector<int> input_locals, parameter_locals, buffer_locals;
  std::vector<std::pair<int, at::Tensor>> constants;
  std::vector<std::shared_ptr<const TensorHooks>>
      parameter_hooks;  ///< per parameter; null where it has none
  std::vector<bool> input_written;
  std::vector<int> output_locals;
  int loss_local = kAbsent;
  bool any_autocast = false;

  Impl(const Graph& g, const StageProgram& p) : graph(g), program(p) {
    bind_operands();
    for (const Node& node : program.nodes) {
      calls.push_back(call_of(node));
      any_autocast = any_autocast || node.autocast.enabled;
    }
    for (const StageOutput& output : program.outputs) {
      output_locals.push_back(local_of(output.value));
    }
    if (program.loss != kNoValue) {
      loss_local = local_of(program.loss);
    }
    find_last_uses();
  }

  int local_of(ValueId id) {
    if (id == kNoValue) {
      return kAbsent;
    }
    return locals.try_emplace(id, static_cast<int>(locals.size())).first->second;
  }

  void bind_operands() {
    std::set<int> written_sets;
    for (const Node& node : program.nodes) {
      for (const ValueId id : node.writes) {
        written_sets.insert(graph.at(id).alias_set);
      }
    }
    std::unordered_map<int, ValueId> parameter_ids, buffer_ids, constant_ids;
    for (std::size_t i = 0; i < graph.values.size(); ++i) {
      const Value& value = graph.values[i];
      const ValueId id(i);
      if (value.kind == ValueKind::Parameter) {
        parameter_ids[value.position] = id;
      } else if (value.kind == ValueKind::Buffer) {
        buffer_ids[value.position] = id;
      } else if (value.kind == ValueKind::Constant) {
        constant_ids[value.position] = id;
      }
    }
    for (const StageInput& input : program.inputs) {
      input_locals.push_back(local_of(input.value));
      input_written.push_back(written_sets.contains(graph.at(input.value).alias_set));
    }
    for (const int p : program.parameters) {
      parameter_locals.push_back(local_of(parameter_ids.at(p)));
      parameter_hooks.push_back(hooks_on(parameter_ids.at(p)));
    }
    for (const int b : program.buffers) {
      buffer_locals.push_back(local_of(buffer_ids.at(b)));
    }
    for (const int c : program.constants) {
      constants.emplace_back(local_of(constant_ids.at(c)),
                             graph.constants[static_cast<std::size_t>(c)]);
    }
  }

  [[nodiscard]] std::shared_ptr<const TensorHooks> hooks_on(ValueId id) const {
    const int hooks = id == kNoValue ? kNoAttachment : graph.at(id).hooks;
    return hooks == kNoAttachment ? nullptr
                                  : std::get<std::shared_ptr<const TensorHooks>>(
                                        graph.attachments[static_cast<std::size_t>(hooks)]);
  }

  Call call_of(const Node& node) {
    Call call;
    if (node.function == kNoAttachment) {
      call.op = operator_of(node);
    } else {
      call.function = std::get<std::shared_ptr<const CustomFunction>>(
          graph.attachments[static_cast<std::size_t>(node.function)]);
    }
    for (const Operand& operand : node.operands) {
      call.arguments.push_back(argument_of(operand));
    }
    for (const ValueId result : node.results) {
      call.results.push_back(local_of(result));
      if (auto hooks = hooks_on(result)) {
        call.hooks.emplace_back(call.results.back(), std::move(hooks));
      }
    }
    call.answer = node.answer;
    call.node = &node;
    call.grad_mode = node.grad_mode;
    call.autocast = node.autocast;
    call.random_index = node.random_index;
    return call;
  }

  static c10::OperatorHandle operator_of(const Node& node) {
    const auto found = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
    if (!found) {
      throw Error(
          Errc::CompileCapture,
          fmt::format("the operator {} is not known here; load the library that registers it",
                      operator_name(node)));
    }
    return *found;
  }

  Argument argument_of(const Operand& operand) {
    if (const auto* value = std::get_if<ValueId>(&operand)) {
      return local_of(*value);
    }
    if (const auto* list = std::get_if<ValueList>(&operand)) {
      LocalList local{.locals = {}, .optional_elements = list->optional_elements};
      for (const ValueId v : list->values) {
        local.locals.push_back(local_of(v));
      }
      return local;
    }
    if (std::holds_alternative<StageDevice>(operand)) {
      return c10::IValue(at::Device(at::kCPU));
    }
    if (std::holds_alternative<StageGenerator>(operand)) {
      return Generator{};
    }
    return std::get<c10::IValue>(operand);
  }

  void find_last_uses() {
    std::set<int> needed(output_locals.begin(), output_locals.end());
    needed.insert(loss_local);
    for (auto call = calls.rbegin(); call != calls.rend(); ++call) {
      std::set<int> touched(call->results.begin(), call->results.end());
      for (const Argument& a : call->arguments) {
        if (const auto* local = std::get_if<int>(&a)) {
          touched.insert(*local);
        } else if (const auto* list = std::get_if<LocalList>(&a)) {
          touched.insert(list->locals.begin(), list->locals.end());
        }
      }
      touched.erase(kAbsent);
      for (const int local : touched) {
        if (needed.insert(local).second) {
          call->last_uses.push_back(local);
        }
      }
    }
  }

  void check_input(const at::Tensor& tensor, std::size_t i) const {
    const Value& expected = graph.at(program.inputs[i].value);
    if (tensor.sizes() != at::IntArrayRef(expected.sizes) ||
        tensor.scalar_type() != expected.dtype) {
      throw Error(Errc::CompileShape,
                  fmt::format("stage \"{}\" was captured with {} of shape {} for {}, but gets {} "
                              "of shape {}; compile again "
                              "for another shape or dtype",
                              program.name,
                              at::toString(expected.dtype),
                              c10::str(at::IntArrayRef(expected.sizes)),
                              value_name(graph, program.inputs[i].value),
                              at::toString(tensor.scalar_type()),
                              c10::str(tensor.sizes())));
    }
  }

  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& inputs,
                               const StageState& state) const {
    std::vector<at::Tensor> values(locals.size());
    SC_CHECK(inputs.size() == input_locals.size(),
             "stage " + program.name + " gets another number of inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_input(inputs[i], i);
      values[static_cast<std::size_t>(input_locals[i])] =
          input_written[i] ? inputs[i].clone() : inputs[i];
    }
    for (std::size_t i = 0; i < parameter_locals.size(); ++i) {
      values[static_cast<std::size_t>(parameter_locals[i])] =
          parameter_hooks[i] ? with_hooks(state.parameters[i], parameter_hooks[i])
                             : state.parameters[i];
    }
    for (std::size_t i = 0; i < buffer_locals.size(); ++i) {
      values[static_cast<std::size_t>(buffer_locals[i])] = state.buffers[i];
    }
    for (const auto& [local, tensor] : constants) {
      values[static_cast<std::size_t>(local)] = tensor;
    }
    return values;
  }

  static std::vector<at::Tensor> tensors_of(const Argument& list,
                                            const std::vector<at::Tensor>& values) {
    std::vector<at::Tensor> tensors;
    for (const int local : std::get<LocalList>(list).locals) {
      tensors.push_back(local == kAbsent ? at::Tensor() : values[static_cast<std::size_t>(local)]);
    }
    return tensors;
  }

  void apply_function(const Call& call, std::vector<at::Tensor>& values) const {
    const std::vector<at::Tensor> joined =
        call.function->join(tensors_of(call.arguments[0], values),
                            tensors_of(call.arguments[1], values),
                            tensors_of(call.arguments[2], values));
    for (std::size_t i = 0; i < joined.size(); ++i) {
      if (call.results[i] != kAbsent) {
        values[static_cast<std::size_t>(call.results[i])] = joined[i];
      }
    }
  }

  void call_operator(const Call& call,
                     torch::jit::Stack& stack,
                     std::vector<at::Tensor>& values,
                     const RandomKey& key) const {
    stack.clear();
    for (const Argument& argument : call.arguments) {
      push(stack, argument, values, key, call.random_index);
    }
    call.op->callBoxed(&stack);
    if (call.answer && stack.back().toBool() != *call.answer) {
      throw Error(Errc::CompileCapture,
                  fmt::format("{} in stage \"{}\" compares two tensors that were {}equal when the "
                              "module was captured and "
                              "are {} now; what the module decides by that is fixed in the "
                              "captured graph: keep the "
                              "decision in tensors (torch::where), or move it out of the module",
                              operator_name(*call.node),
                              program.name,
                              *call.answer ? "" : "not ",
                              *call.answer ? "not" : "equal"));
    }
    store(call, stack, values);
  }

  static void push(torch::jit::Stack& stack,
                   const Argument& argument,
                   const std::vector<at::Tensor>& values,
                   const RandomKey& key,
                   int random_index) {
    if (const auto* literal = std::get_if<c10::IValue>(&argument)) {
      stack.push_back(*literal);
    } else if (const auto* local = std::get_if<int>(&argument)) {
      stack.emplace_back(values[static_cast<std::size_t>(*local)]);
    } else if (const auto* list = std::get_if<LocalList>(&argument)) {
      push_list(stack, *list, values);
    } else {
      stack.emplace_back(make_generator(key, random_index));
    }
  }

  static void push_list(torch::jit::Stack& stack,
                        const LocalList& list,
                        const std::vector<at::Tensor>& values) {
    if (list.optional_elements) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const int local : list.locals) {
        tensors.push_back(local == kAbsent ? std::optional<at::Tensor>()
                                           : values[static_cast<std::size_t>(local)]);
      }
      stack.emplace_back(std::move(tensors));
      return;
    }
    c10::List<at::Tensor> tensors;
    for (const int local : list.locals) {
      tensors.push_back(values[static_cast<std::size_t>(local)]);
    }
    stack.emplace_back(std::move(tensors));
  }

  static void store(const Call& call,
                    const torch::jit::Stack& stack,
                    std::vector<at::Tensor>& values) {
    std::size_t next = 0;
    const auto take = [&](const at::Tensor& t) {
      const int local = call.results[next++];
      if (local != kAbsent) {
        values[static_cast<std::size_t>(local)] = t;
      }
    };
    for (const c10::IValue& result : stack) {
      if (result.isTensor()) {
        take(result.toTensor());
      } else if (result.isTensorList()) {
        for (const at::Tensor& t : result.toTensorVector()) {
          take(t);
        }
      }
    }
  }
};

StageInterpreter::StageInterpreter(const Graph& graph, const StageProgram& program)
    : impl_(std::make_unique<Impl>(graph, program)) {}
StageInterpreter::~StageInterpreter() = default;
StageInterpreter::StageInterpreter(StageInterpreter&&) noexcept = default;
StageInterpreter& StageInterpreter::operator=(StageInterpreter&&) noexcept = default;

StageResult StageInterpreter::run(const std::vector<at::Tensor>& inputs,
                                  const StageState& state,
                                  const RandomKey& key) const {
  const bool gradients = at::GradMode::is_enabled();
  std::vector<at::Tensor> values = impl_->bind(inputs, state);
  std::optional<AutocastGuard> autocast;
  if (impl_->any_autocast) {
    autocast.emplace();
  }
  torch::jit::Stack stack;
  for (const Call& call : impl_->calls) {
    const at::AutoGradMode mode(gradients && call.grad_mode);
    if (autocast) {
      AutocastGuard::set(call.autocast);
    }
    if (call.function) {
      impl_->apply_function(call, values);
    } else {
      impl_->call_operator(call, stack, values, key);
    }
    for (const auto& [local, hooks] : call.hooks) {
      values[static_cast<std::size_t>(local)] =
          with_hooks(values[static_cast<std::size_t>(local)], hooks);
    }
    for (const int local : call.last_uses) {
      values[static_cast<std::size_t>(local)].reset();
    }
  }
  StageResult result;
  for (const int local : impl_->output_locals) {
    result.outputs.push_back(values[static_cast<std::size_t>(local)].contiguous());  // keeps SP-1
  }
  if (impl_->loss_local != kAbsent) {
    result.loss = values[static_cast<std::size_t>(impl_->loss_local)];
  }
  return result;
}

}  // namespace stagecraft
