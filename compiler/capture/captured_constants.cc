#include "stagecraft/compiler/capture/captured_constants.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/boxed_call.h"
#include "stagecraft/compiler/capture/operand_of.h"
#include "stagecraft/compiler/capture/refusals.h"

namespace stagecraft {

bool CapturedConstants::seen(const at::Tensor& tensor) const {
  return seen_.contains(tensor.unsafeGetTensorImpl());
}

bool CapturedConstants::dependent(const at::Tensor& tensor) const {
  return values_.find(tensor) || (seen(tensor) && values_.share_storage_with(tensor));
}

void CapturedConstants::see(const c10::OperatorHandle& op, const at::Tensor& tensor) {
  if (seen(tensor)) {
    return;
  }
  if (tensor.requires_grad()) {
    throw Error(
        Errc::CompileCapture,
        fmt::format(
            "{} reads a tensor of shape {} that requires a gradient but is neither an input nor a "
            "registered parameter{}; register it with register_parameter, or detach it",
            full_name(op),
            c10::str(tensor.sizes()),
            under_marker()));
  }
  if (values_.share_storage_with(tensor)) {
    throw Error(Errc::CompileCapture,
                fmt::format("{} reads a tensor of shape {} that shares its memory with a value of "
                            "the model but was not made by an operator{}; use one (detach, view, "
                            "slice)",
                            full_name(op),
                            c10::str(tensor.sizes()),
                            under_marker()));
  }
  seen_.insert(tensor.unsafeGetTensorImpl());
  values_.hold(tensor);
}

void CapturedConstants::fold(const c10::OperatorHandle& op,
                             std::vector<c10::IValue> arguments,
                             const torch::jit::Stack& stack) {
  const auto& returns = op.schema().returns();
  const bool makes_view = returns.size() == 1 && returns[0].alias_info() != nullptr &&
                          !returns[0].alias_info()->isWrite();
  for (const c10::IValue& result : results_on(stack, op)) {
    for_each_tensor(result, [&](const at::Tensor& t) {
      see(op, t);
      if (makes_view && result.isTensor()) {
        views_.try_emplace(t.unsafeGetTensorImpl(), FoldedView{op, arguments});
      }
    });
  }
}

ValueId CapturedConstants::value_of(const at::Tensor& tensor) {
  if (const auto known = values_.find(tensor)) {
    return *known;
  }
  return dependent(tensor) ? materialize(tensor) : lift(tensor);
}

ValueId CapturedConstants::lift(const at::Tensor& tensor) {
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  const auto version = static_cast<std::uint32_t>(tensor._version());
  const auto known = lifted_.find(impl);
  if (known != lifted_.end() && known->second.version == version) {
    return known->second.value;
  }
  at::Tensor copy = tensor.detach().clone();
  if (impl->is_wrapped_number()) {
    copy.unsafeGetTensorImpl()->set_wrapped_number(true);  // promotes types less than a tensor does
  }
  const ValueId id{static_cast<int>(graph_.values.size())};
  graph_.values.push_back({ValueKind::Constant,
                           static_cast<int>(graph_.constants.size()),
                           tensor.sizes().vec(),
                           tensor.scalar_type(),
                           false,
                           values_.alias_set_of(copy)});
  graph_.constants.push_back(std::move(copy));
  lifted_[impl] = {id, version};
  values_.hold(tensor);
  return id;
}

ValueId CapturedConstants::materialize(const at::Tensor& tensor) {
  if (const auto known = values_.find(tensor)) {
    return *known;
  }
  const auto view = views_.find(tensor.unsafeGetTensorImpl());
  if (view != views_.end()) {
    return append_view(view->second, tensor);
  }
  // A written tensor is not a constant: the stage that writes it makes a new one in each run.
  Node node{.name = "aten::clone",
            .operands = {lift(tensor), c10::IValue()},
            .annotations = open_annotations()};
  return values_.append(std::move(node), tensor);
}

ValueId CapturedConstants::append_view(const FoldedView& view, const at::Tensor& result) {
  for (const c10::IValue& argument : view.arguments) {
    for_each_tensor(argument, [&](const at::Tensor& t) { materialize(t); });
  }
  Node node;
  node.name = view.op.operator_name().name;
  node.overload = view.op.operator_name().overload_name;
  for (const c10::IValue& argument : view.arguments) {
    node.operands.push_back(
        operand_of(view.op, argument, [this](const at::Tensor& t) { return value_of(t); }));
  }
  node.annotations = open_annotations();
  return values_.append(std::move(node), result);
}

}  // namespace stagecraft
