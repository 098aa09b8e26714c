#include "stagecraft/compiler/fuse/trace.h"

#include <algorithm>
#include <utility>

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/library.h>

namespace stagecraft {
namespace {

// Right below autograd, and nobody else's in a program without Python.
constexpr auto kBelowAutograd = c10::DispatchKey::Fake;

thread_local Tracer* at_work = nullptr;

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  Tracer::intercept(op, stack);
}

/// The operator that returns what a call in place writes.
std::optional<c10::OperatorHandle> without_writing(const c10::OperatorHandle& op) {
  c10::OperatorName name = op.operator_name();
  if (!name.name.ends_with('_')) {
    return std::nullopt;
  }
  name.name.pop_back();
  return c10::Dispatcher::singleton().findSchema(name);
}

}  // namespace

TensorFacts facts_of(const at::Tensor& tensor) {
  return {tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()};
}

std::string operator_name(const TracedCall& call) {
  const c10::OperatorName& name = call.op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

std::vector<TracedValue> reads_of(const TracedCall& call) {
  std::vector<TracedValue> all;
  for (const TracedOperand& operand : call.operands) {
    if (const auto* value = std::get_if<TracedValue>(&operand)) {
      all.push_back(*value);
    } else if (const auto* list = std::get_if<std::vector<TracedValue>>(&operand)) {
      all.insert(all.end(), list->begin(), list->end());
    }
  }
  return all;
}

TracedValue Tracer::add(const at::Tensor& tensor) {
  return make(tensor);
}

TracedValue Tracer::make(const at::Tensor& tensor) {
  const auto value = static_cast<TracedValue>(trace_.values.size());
  trace_.values.push_back(facts_of(tensor));
  alive_.push_back(tensor);
  known_[{tensor.const_data_ptr(), trace_.values.back()}] = value;
  return value;
}

std::optional<TracedValue> Tracer::find(const at::Tensor& tensor) const {
  const auto found = known_.find({tensor.const_data_ptr(), facts_of(tensor)});
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void Tracer::record(const std::function<void()>& work) {
  at_work = this;
  struct Done {
    ~Done() { at_work = nullptr; }
  } const done;
  const c10::impl::IncludeDispatchKeyGuard below(kBelowAutograd);
  work();
}

void Tracer::intercept(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  Tracer* const tracer = at_work;
  const auto count = static_cast<std::ptrdiff_t>(op.schema().arguments().size());
  const std::vector<c10::IValue> arguments(stack->end() - count, stack->end());
  {
    const c10::impl::ExcludeDispatchKeyGuard once(kBelowAutograd);
    op.callBoxed(stack);
  }
  if (tracer != nullptr) {
    tracer->take(op, arguments, *stack);
  }
}

void Tracer::fail(const c10::OperatorHandle& op, const std::string& why) {
  if (fault_.empty()) {
    fault_ = fmt::format("{} {}", op.operator_name().name, why);
  }
}

bool Tracer::is_shared(const at::Tensor& tensor) const {
  return std::ranges::any_of(alive_, [&](const at::Tensor& other) {
    return other.is_alias_of(tensor) && facts_of(other) != facts_of(tensor);
  });
}

TracedOperand Tracer::operand_of(const c10::IValue& argument) {
  const auto value_of = [&](const at::Tensor& t) {
    const std::optional<TracedValue> known = find(t);
    if (!known && fault_.empty()) {
      fault_ = "something reads a tensor that nothing here made";
    }
    return known.value_or(0);
  };
  if (argument.isTensor()) {
    const at::Tensor& tensor = argument.toTensor();
    if (!tensor.defined() || (tensor.dim() == 0 && !find(tensor))) {
      return argument;  // a number of C++, wrapped
    }
    return value_of(tensor);
  }
  if (argument.isTensorList()) {
    std::vector<TracedValue> list;
    for (const at::Tensor& tensor : argument.toTensorVector()) {
      list.push_back(value_of(tensor));
    }
    return list;
  }
  return argument;
}

void Tracer::take(const c10::OperatorHandle& op,
                  const std::vector<c10::IValue>& arguments,
                  const torch::jit::Stack& stack) {
  if (op.hasTag(at::Tag::nondeterministic_seeded)) {
    return fail(op, "draws random numbers");
  }
  TracedCall call{.op = op, .operands = {}, .results = {}};
  for (const c10::IValue& argument : arguments) {
    call.operands.push_back(operand_of(argument));
  }
  const auto results = static_cast<std::ptrdiff_t>(op.schema().returns().size());
  std::vector<at::Tensor> made;
  for (auto result = stack.end() - results; result != stack.end(); ++result) {
    if (result->isTensor()) {
      made.push_back(result->toTensor());
    } else if (result->isTensorList()) {
      for (const at::Tensor& tensor : result->toTensorVector()) {
        made.push_back(tensor);
      }
    } else {
      return fail(op, "reads the values of a tensor");
    }
  }
  if (op.schema().is_mutable()) {
    const std::optional<c10::OperatorHandle> functional = without_writing(op);
    if (!functional || made.size() != 1 || is_shared(made.front())) {
      return fail(op, "writes in place");
    }
    call.op = *functional;
    call.results = {make(made.front())};
    trace_.calls.push_back(std::move(call));
    return;
  }
  bool anything_new = false;
  for (const at::Tensor& tensor : made) {
    if (!tensor.defined()) {
      return fail(op, "returns nothing where a tensor could be");
    }
    const std::optional<TracedValue> known = find(tensor);
    anything_new = anything_new || !known;
    call.results.push_back(known ? *known : make(tensor));
  }
  if (anything_new) {
    trace_.calls.push_back(std::move(call));
  }
}

TORCH_LIBRARY_IMPL(_, Fake, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace stagecraft
