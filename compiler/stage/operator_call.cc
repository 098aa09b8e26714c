#include "stagecraft/compiler/stage/operator_call.h"

#include <algorithm>

#include <ATen/core/List.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

at::Tensor& at_place(std::vector<at::Tensor>& values, int place) {
  return values[static_cast<std::size_t>(place)];
}

c10::OperatorHandle operator_of(const Node& node) {
  const auto found = c10::Dispatcher::singleton().findSchema({node.name, node.overload});
  if (!found) {
    throw Error(Errc::CompileCapture,
                fmt::format("the operator {} is not known here; load the library that registers it",
                            operator_name(node)));
  }
  return *found;
}

std::shared_ptr<const NativeCall> native_call_of(const StageProgram& stage, const Node& node) {
  std::vector<Value> results;
  for (const ValueId result : node.results) {
    results.push_back(stage.at(result));
  }
  if (is_driver_code(node)) {
    return std::make_shared<const NativeCall>(
        *std::get<std::shared_ptr<const DriverCode>>(
            stage.attachments[static_cast<std::size_t>(node.function)]),
        std::move(results));
  }
  return std::make_shared<const NativeCall>(
      std::get<c10::IValue>(node.operands.at(0)).toStringRef(), std::move(results));
}

std::vector<at::Tensor> tensors_at(const std::vector<int>& places,
                                   const std::vector<at::Tensor>& values) {
  std::vector<at::Tensor> tensors;
  for (const int place : places) {
    tensors.push_back(place == OperatorCall::kAbsent ? at::Tensor()
                                                     : values[static_cast<std::size_t>(place)]);
  }
  return tensors;
}

}  // namespace

std::shared_ptr<const TensorHooks> hooks_on(const StageProgram& stage, ValueId id) {
  const int hooks = id == kNoValue ? kNoAttachment : stage.at(id).hooks;
  return hooks == kNoAttachment ? nullptr
                                : std::get<std::shared_ptr<const TensorHooks>>(
                                      stage.attachments[static_cast<std::size_t>(hooks)]);
}

OperatorCall::OperatorCall(const StageProgram& stage,
                           const Node& node,
                           const PlaceOf& place_of,
                           const c10::Device& device)
    : grad_mode(node.grad_mode),
      autocast(node.autocast),
      device_(device),
      random_index_(node.random_index),
      answer_(node.answer),
      name_(operator_name(node)) {
  if (node.name == kNativeOperator || is_driver_code(node)) {
    native_ = native_call_of(stage, node);
  } else if (node.function == kNoAttachment) {
    op_ = operator_of(node);
    check_ = argument_check(op_->operator_name());
  } else {
    function_ = std::get<std::shared_ptr<const CustomFunction>>(
        stage.attachments[static_cast<std::size_t>(node.function)]);
  }
  for (const Operand& operand : node.operands) {
    arguments_.push_back(argument_of(operand, place_of));
  }
  for (const ValueId result : node.results) {
    results_.push_back(place_of(result));
    if (auto hooks = hooks_on(stage, result)) {
      hooks_.emplace_back(results_.back(), std::move(hooks));
    }
  }
}

OperatorCall::Argument OperatorCall::argument_of(const Operand& operand,
                                                 const PlaceOf& place_of) const {
  if (const auto* value = std::get_if<ValueId>(&operand)) {
    return place_of(*value);
  }
  if (const auto* list = std::get_if<ValueList>(&operand)) {
    PlaceList places{.places = {}, .optional_elements = list->optional_elements};
    for (const ValueId v : list->values) {
      places.places.push_back(place_of(v));
    }
    return places;
  }
  if (std::holds_alternative<StageDevice>(operand)) {
    return c10::IValue(device_);
  }
  if (std::holds_alternative<StageGenerator>(operand)) {
    return Generator{};
  }
  return std::get<c10::IValue>(operand);
}

std::vector<int> OperatorCall::places() const {
  std::vector<int> all;
  const auto add = [&](int place) {
    if (place != kAbsent) {
      all.push_back(place);
    }
  };
  for (const int result : results_) {
    add(result);
  }
  for (const Argument& argument : arguments_) {
    if (const auto* place = std::get_if<int>(&argument)) {
      add(*place);
    } else if (const auto* list = std::get_if<PlaceList>(&argument)) {
      std::ranges::for_each(list->places, add);
    }
  }
  return all;
}

void OperatorCall::run(std::vector<at::Tensor>& values,
                       torch::jit::Stack& stack,
                       const RandomKey& key,
                       const std::string& stage_name) const {
  if (function_) {
    apply_function(values);
  } else if (native_) {
    run_native_call(values);
  } else {
    call_operator(values, stack, key, stage_name);
  }
  for (const auto& [place, hooks] : hooks_) {
    at_place(values, place) = with_hooks(at_place(values, place), hooks);
  }
}

void OperatorCall::apply_function(std::vector<at::Tensor>& values) const {
  store(function_->join(list(0, values), list(1, values), list(2, values)), values);
}

void OperatorCall::run_native_call(std::vector<at::Tensor>& values) const {
  if (arguments_.size() == 2) {  // code of the driver
    store(native_->run(list(1, values), {}, {}, true), values);
    return;
  }
  const bool training = std::get<c10::IValue>(arguments_[4]).toBool();
  store(native_->run(list(1, values), list(2, values), list(3, values), training), values);
}

/// Returns the tensors of an argument that is a list.
std::vector<at::Tensor> OperatorCall::list(std::size_t argument,
                                           const std::vector<at::Tensor>& values) const {
  return tensors_at(std::get<PlaceList>(arguments_[argument]).places, values);
}

/// Requires: as many as results.
void OperatorCall::store(const std::vector<at::Tensor>& results,
                         std::vector<at::Tensor>& values) const {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results_[i] != kAbsent) {
      at_place(values, results_[i]) = results[i];
    }
  }
}

void OperatorCall::call_operator(std::vector<at::Tensor>& values,
                                 torch::jit::Stack& stack,
                                 const RandomKey& key,
                                 const std::string& stage_name) const {
  stack.clear();
  for (const Argument& argument : arguments_) {
    push(stack, argument, values, key);
  }
  if (check_ != nullptr) {
    check_(stack);
  }
  op_->callBoxed(&stack);
  if (answer_ && stack.back().toBool() != *answer_) {
    throw Error(
        Errc::CompileCapture,
        fmt::format("{} in stage \"{}\" compares two tensors that were {}equal when the "
                    "module was captured and are {} now; a decision by this answer is fixed "
                    "in the captured graph: keep the decision in tensors (torch::where), or "
                    "make this part a native stage (sc::native_stage)",
                    name_,
                    stage_name,
                    *answer_ ? "" : "not ",
                    *answer_ ? "not" : "equal"));
  }
  store(stack, values);
}

void OperatorCall::push(torch::jit::Stack& stack,
                        const Argument& argument,
                        const std::vector<at::Tensor>& values,
                        const RandomKey& key) const {
  if (const auto* literal = std::get_if<c10::IValue>(&argument)) {
    stack.push_back(*literal);
  } else if (const auto* place = std::get_if<int>(&argument)) {
    stack.emplace_back(values[static_cast<std::size_t>(*place)]);
  } else if (const auto* list = std::get_if<PlaceList>(&argument)) {
    const std::vector<at::Tensor> tensors = tensors_at(list->places, values);
    if (list->optional_elements) {
      c10::List<std::optional<at::Tensor>> optional;
      for (const at::Tensor& tensor : tensors) {
        optional.push_back(tensor.defined() ? std::optional(tensor) : std::nullopt);
      }
      stack.emplace_back(std::move(optional));
    } else {
      stack.emplace_back(c10::List<at::Tensor>(tensors));
    }
  } else {
    stack.emplace_back(make_generator(key, random_index_, device_));
  }
}

void OperatorCall::store(const torch::jit::Stack& stack, std::vector<at::Tensor>& values) const {
  std::size_t next = 0;
  const auto take = [&](const at::Tensor& t) {
    if (next == results_.size()) {
      refuse_results(next + 1);
    }
    if (const int place = results_[next++]; place != kAbsent) {
      at_place(values, place) = t;
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
  if (next != results_.size()) {
    refuse_results(next);
  }
}

/// Called if an operator that returns a list made another number of tensors.
void OperatorCall::refuse_results(std::size_t made) const {
  throw Error(Errc::CompileShape,
              fmt::format("{} made {} tensors when it was captured, and makes {}{} now; compile "
                          "again",
                          name_,
                          results_.size(),
                          made,
                          made > results_.size() ? " or more" : ""));
}

}  // namespace stagecraft
