#include "stagecraft/bench/step/product_calls.h"

#include <sstream>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

namespace stagecraft::bench {
namespace {

/// Returns equal texts for calls that compute alike.
std::string kind_of(const c10::OperatorName& name, c10::ArrayRef<c10::IValue> arguments) {
  std::ostringstream kind;
  kind << name;
  for (const c10::IValue& argument : arguments) {
    kind << ' ';
    if (argument.isTensor() && argument.toTensor().defined()) {
      const at::Tensor& tensor = argument.toTensor();
      kind << tensor.sizes() << tensor.strides() << tensor.scalar_type();
    } else {
      kind << argument;
    }
  }
  return kind.str();
}

/// Returns one more than the position of the furthest element.
std::int64_t extent(const at::Tensor& shape) {
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < shape.dim(); ++d) {
    last += (shape.size(d) - 1) * shape.stride(d);
  }
  return last + 1;
}

/// Returns the shape without the recorded tensor, whose memory belongs to the step.
c10::IValue shape_alone(const c10::IValue& argument) {
  if (!argument.isTensor() || !argument.toTensor().defined()) {
    return argument;
  }
  const at::Tensor& tensor = argument.toTensor();
  return at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta));
}

/// Returns a tensor with values of ordinary size, since some processors are slow with others.
c10::IValue with_values(const c10::IValue& argument) {
  if (!argument.isTensor() || !argument.toTensor().defined()) {
    return argument;
  }
  const at::Tensor& shape = argument.toTensor();
  const at::Tensor all = at::empty({extent(shape)}, at::TensorOptions(shape.scalar_type()));
  all.uniform_(-1.0, 1.0);
  return all.as_strided(shape.sizes(), shape.strides());
}

}  // namespace

void ProductCalls::record(const c10::OperatorName& name, c10::ArrayRef<c10::IValue> arguments) {
  const auto [kind, is_new] = kinds_.try_emplace(kind_of(name, arguments), calls_.size());
  if (is_new) {
    Call call{.name = name, .arguments = {}};
    for (const c10::IValue& argument : arguments) {
      call.arguments.push_back(shape_alone(argument));
    }
    calls_.push_back(std::move(call));
  }
  order_.push_back(kind->second);
}

void ProductCalls::prepare() {
  const at::AutoDispatchBelowADInplaceOrView alone;
  for (Call& call : calls_) {
    for (c10::IValue& argument : call.arguments) {
      argument = with_values(argument);
    }
    // The result tensor is the last argument of these operators.
    const bool takes_result = call.name.name == "aten::mm" || call.name.name == "aten::addmm" ||
                              call.name.name == "aten::bmm" || call.name.name == "aten::baddbmm";
    if (takes_result && call.name.overload_name.empty()) {
      torch::jit::Stack stack = call.arguments;
      c10::Dispatcher::singleton().findSchemaOrThrow(call.name.name.c_str(), "").callBoxed(&stack);
      call.arguments.push_back(stack.front());
      call.name.overload_name = "out";
    }
  }
}

void ProductCalls::run() const {
  const at::AutoDispatchBelowADInplaceOrView alone;
  std::vector<c10::OperatorHandle> operators;
  operators.reserve(calls_.size());
  for (const Call& call : calls_) {
    operators.push_back(c10::Dispatcher::singleton().findSchemaOrThrow(
        call.name.name.c_str(), call.name.overload_name.c_str()));
  }
  torch::jit::Stack stack;
  for (const std::size_t kind : order_) {
    stack = calls_[kind].arguments;
    operators[kind].callBoxed(&stack);
  }
}

}  // namespace stagecraft::bench
