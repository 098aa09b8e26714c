#include "stagecraft/compiler/interpreter.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

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
  c10::OperatorHandle op;
  std::vector<Argument> arguments;
  std::vector<int> results;
  std::vector<int> last_uses;  ///< locals nobody reads after this call
  bool grad_mode = true;
  Autocast autocast;
  int random_index = -1;
};

/// Autocast as recorded, for the calls that want it. The cast cache is process-wide and outlives optimizer
/// steps, so it stays off.
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
  struct Constant {
    int local;
    at::Tensor tensor;
    bool written;
  };
  std::vector<Constant> constants;
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
    }
    for (const int b : program.buffers) {
      buffer_locals.push_back(local_of(buffer_ids.at(b)));
    }
    for (const int c : program.constants) {
      const ValueId id = constant_ids.at(c);
      constants.push_back({local_of(id), graph.constants[static_cast<std::size_t>(c)],
                           written_sets.contains(graph.at(id).alias_set)});
    }
  }

  Call call_of(const Node& node) {
    const auto found = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
    if (!found) {
      throw Error(Errc::CompileCapture,
                  fmt::format("the operator {} is not known here; load the library that registers it", operator_name(node)));
    }
    Call call{.op = *found};
    for (const Operand& operand : node.operands) {
      call.arguments.push_back(argument_of(operand));
    }
    for (const ValueId result : node.results) {
      call.results.push_back(local_of(result));
    }
    call.grad_mode = node.grad_mode;
    call.autocast = node.autocast;
    call.random_index = node.random_index;
    return call;
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
    if (tensor.sizes() != at::IntArrayRef(expected.sizes) || tensor.scalar_type() != expected.dtype) {
      throw Error(Errc::CompileShape,
                  fmt::format("stage \"{}\" was captured with {} of shape {} for {}, but gets {} of shape {}; compile again "
                              "for another shape or dtype",
                              program.name,
                              at::toString(expected.dtype),
                              c10::str(at::IntArrayRef(expected.sizes)),
                              value_name(graph, program.inputs[i].value),
                              at::toString(tensor.scalar_type()),
                              c10::str(tensor.sizes())));
    }
  }

  std::vector<at::Tensor> bind(const std::vector<at::Tensor>& inputs, const StageState& state) const {
    std::vector<at::Tensor> values(locals.size());
    SC_CHECK(inputs.size() == input_locals.size(), "stage " + program.name + " gets another number of inputs");
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_input(inputs[i], i);
      values[static_cast<std::size_t>(input_locals[i])] = input_written[i] ? inputs[i].clone() : inputs[i];
    }
    for (std::size_t i = 0; i < parameter_locals.size(); ++i) {
      values[static_cast<std::size_t>(parameter_locals[i])] = state.parameters[i];
    }
    for (std::size_t i = 0; i < buffer_locals.size(); ++i) {
      values[static_cast<std::size_t>(buffer_locals[i])] = state.buffers[i];
    }
    for (const Constant& c : constants) {
      values[static_cast<std::size_t>(c.local)] = c.written ? c.tensor.clone() : c.tensor;
    }
    return values;
  }

  static void push(torch::jit::Stack& stack, const Argument& argument, const std::vector<at::Tensor>& values,
                   const RandomKey& key, int random_index) {
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

  static void push_list(torch::jit::Stack& stack, const LocalList& list, const std::vector<at::Tensor>& values) {
    if (list.optional_elements) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const int local : list.locals) {
        tensors.push_back(local == kAbsent ? std::optional<at::Tensor>() : values[static_cast<std::size_t>(local)]);
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

  static void store(const Call& call, const torch::jit::Stack& stack, std::vector<at::Tensor>& values) {
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
    stack.clear();
    for (const Argument& argument : call.arguments) {
      Impl::push(stack, argument, values, key, call.random_index);
    }
    call.op.callBoxed(&stack);
    Impl::store(call, stack, values);
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
