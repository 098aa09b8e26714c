#include "stagecraft/compiler/interpreter.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/autocast_guard.h"
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
  std::string name;                                                       ///< for messages
};

}  // namespace

struct ChunkInterpreter::Impl {
  /// An operand that is part of the stage's state, by its position there.
  struct Bound {
    std::size_t position = 0;
    int local = kAbsent;
    std::shared_ptr<const TensorHooks> hooks;  ///< null where it has none
  };
  struct Input {
    int local = kAbsent;
    bool written = false;  ///< in place: the run gets a copy
    ValueId value;
    Value expected;
  };

  std::string stage_name;
  std::unordered_map<ValueId, int> locals;
  std::vector<Call> calls;
  std::vector<Input> inputs;
  std::vector<Bound> parameters, buffers;
  std::vector<std::pair<int, at::Tensor>> constants;
  std::vector<std::pair<int, MemoryOrder>> outputs;
  int loss_local = kAbsent;
  bool any_autocast = false;

  Impl(const StageProgram& stage, const Chunk& chunk) : stage_name(stage.name) {
    bind_operands(stage, chunk);
    for (const Node& node : chunk.nodes) {
      calls.push_back(call_of(stage, node));
      any_autocast = any_autocast || node.autocast.enabled;
    }
    for (const ValueId output : chunk.outputs) {
      outputs.emplace_back(local_of(output), stage.at(output).order);
    }
    if (makes(chunk, stage.loss)) {
      loss_local = local_of(stage.loss);
    }
    find_last_uses();
  }

  static bool makes(const Chunk& chunk, ValueId value) {
    return value != kNoValue && std::ranges::any_of(chunk.nodes, [&](const Node& node) {
             return std::ranges::find(node.results, value) != node.results.end();
           });
  }

  int local_of(ValueId id) {
    if (id == kNoValue) {
      return kAbsent;
    }
    return locals.try_emplace(id, static_cast<int>(locals.size())).first->second;
  }

  void bind_operands(const StageProgram& stage, const Chunk& chunk) {
    std::set<int> written_sets;
    std::set<ValueId> used(chunk.outputs.begin(), chunk.outputs.end());
    for (const Node& node : chunk.nodes) {
      for (const ValueId id : node.writes) {
        written_sets.insert(stage.at(id).alias_set);
      }
      const std::vector<ValueId> reads = reads_of(node);
      used.insert(reads.begin(), reads.end());
    }
    for (const ValueId id : chunk.inputs) {
      const Value& value = stage.at(id);
      inputs.push_back({.local = local_of(id),
                        .written = written_sets.contains(value.alias_set),
                        .value = id,
                        .expected = value});
    }
    const auto bind_state = [&](const auto& all, std::vector<Bound>& bound) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (used.contains(all[i].value)) {
          bound.push_back({i, local_of(all[i].value), hooks_on(stage, all[i].value)});
        }
      }
    };
    bind_state(stage.parameters, parameters);
    bind_state(stage.buffers, buffers);
    for (const StageConstant& constant : stage.constants) {
      if (used.contains(constant.value)) {
        constants.emplace_back(local_of(constant.value), constant.tensor);
      }
    }
  }

  static std::shared_ptr<const TensorHooks> hooks_on(const StageProgram& stage, ValueId id) {
    const int hooks = id == kNoValue ? kNoAttachment : stage.at(id).hooks;
    return hooks == kNoAttachment ? nullptr
                                  : std::get<std::shared_ptr<const TensorHooks>>(
                                        stage.attachments[static_cast<std::size_t>(hooks)]);
  }

  Call call_of(const StageProgram& stage, const Node& node) {
    Call call;
    if (node.function == kNoAttachment) {
      call.op = operator_of(node);
    } else {
      call.function = std::get<std::shared_ptr<const CustomFunction>>(
          stage.attachments[static_cast<std::size_t>(node.function)]);
    }
    for (const Operand& operand : node.operands) {
      call.arguments.push_back(argument_of(operand));
    }
    for (const ValueId result : node.results) {
      call.results.push_back(local_of(result));
      if (auto hooks = hooks_on(stage, result)) {
        call.hooks.emplace_back(call.results.back(), std::move(hooks));
      }
    }
    call.answer = node.answer;
    call.name = operator_name(node);
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
    std::set<int> needed{loss_local};
    for (const auto& [local, order] : outputs) {
      needed.insert(local);
    }
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

  void check_input(const at::Tensor& tensor, const Input& input) const {
    const Value& expected = input.expected;
    const std::vector<std::int64_t> sizes = sizes_in_order(expected.sizes, expected.order);
    if (tensor.sizes() != at::IntArrayRef(sizes) || tensor.scalar_type() != expected.dtype) {
      throw Error(Errc::CompileShape,
                  fmt::format("stage \"{}\" was captured with {} of shape {} for {}, but gets {} "
                              "of shape {}; compile again for another shape or dtype",
                              stage_name,
                              at::toString(expected.dtype),
                              c10::str(at::IntArrayRef(sizes)),
                              value_name(expected, input.value),
                              at::toString(tensor.scalar_type()),
                              c10::str(tensor.sizes())));
    }
  }

  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& given,
                               const StageState& state) const {
    std::vector<at::Tensor> values(locals.size());
    const auto value = [&](int local) -> at::Tensor& {
      return values[static_cast<std::size_t>(local)];
    };
    SC_CHECK(given.size() == inputs.size(),
             "stage " + stage_name + " gets another number of inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_input(given[i], inputs[i]);
      value(inputs[i].local) = from_memory_order(inputs[i].written ? given[i].clone() : given[i],
                                                 inputs[i].expected.order);
    }
    for (const Bound& parameter : parameters) {
      const at::Tensor& tensor = state.parameters[parameter.position];
      value(parameter.local) = parameter.hooks ? with_hooks(tensor, parameter.hooks) : tensor;
    }
    for (const Bound& buffer : buffers) {
      value(buffer.local) = state.buffers[buffer.position];
    }
    for (const auto& [local, tensor] : constants) {
      value(local) = tensor;
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
                              call.name,
                              stage_name,
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
      if (next == call.results.size()) {
        refuse_results(call, next + 1);
      }
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
    if (next != call.results.size()) {
      refuse_results(call, next);
    }
  }

  /// A list is as long as its operator makes it.
  [[noreturn]] static void refuse_results(const Call& call, std::size_t made) {
    throw Error(Errc::CompileShape,
                fmt::format("{} made {} tensors when it was captured, and makes {}{} now; compile "
                            "again",
                            call.name,
                            call.results.size(),
                            made,
                            made > call.results.size() ? " or more" : ""));
  }
};

ChunkInterpreter::ChunkInterpreter(const StageProgram& stage, const Chunk& chunk)
    : impl_(std::make_unique<Impl>(stage, chunk)) {}
ChunkInterpreter::~ChunkInterpreter() = default;
ChunkInterpreter::ChunkInterpreter(ChunkInterpreter&&) noexcept = default;
ChunkInterpreter& ChunkInterpreter::operator=(ChunkInterpreter&&) noexcept = default;

ChunkResult ChunkInterpreter::run(const std::vector<at::Tensor>& inputs,
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
  ChunkResult result;
  for (const auto& [local, order] : impl_->outputs) {
    result.outputs.push_back(  // keeps SP-1
        to_memory_order(values[static_cast<std::size_t>(local)], order));
  }
  if (impl_->loss_local != kAbsent) {
    result.loss = values[static_cast<std::size_t>(impl_->loss_local)];
  }
  return result;
}

}  // namespace stagecraft
