#include "stagecraft/compiler/capture/operand_of.h"

#include <algorithm>

#include <ATen/core/List.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/boxed_call.h"
#include "stagecraft/compiler/capture/refusals.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {

Operand operand_of(const c10::OperatorHandle& op,
                   const c10::IValue& argument,
                   const std::function<ValueId(const at::Tensor&)>& value_of) {
  if (argument.isTensor()) {
    return argument.toTensor().defined() ? Operand(value_of(argument.toTensor()))
                                         : Operand(c10::IValue(at::Tensor()));
  }
  if (argument.isDevice()) {
    if (!is_program_device(argument.toDevice())) {
      throw Error(Errc::CompileCapture,
                  fmt::format("{} names the device {}{}; a stage runs on the device of its worker: "
                              "leave the device out, or take it from an input's options",
                              full_name(op),
                              argument.toDevice().str(),
                              under_marker()));
    }
    return StageDevice{};
  }
  if (argument.isTensorList()) {
    ValueList list;
    for (const at::Tensor& t : argument.toTensorVector()) {
      list.values.push_back(value_of(t));
    }
    return list;
  }
  const auto is_tensor = [](const c10::IValue& v) { return v.isTensor(); };
  if (argument.isList() && std::ranges::any_of(argument.toListRef(), is_tensor)) {
    ValueList list{.values = {}, .optional_elements = true};
    for (const c10::IValue& element : argument.toListRef()) {
      const bool present = element.isTensor() && element.toTensor().defined();
      list.values.push_back(present ? value_of(element.toTensor()) : kNoValue);
    }
    return list;
  }
  return argument;
}

}  // namespace stagecraft
