#include "stagecraft/compiler/native/native_stage.h"

#include <mutex>

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/ScopeExit.h>
#include <fmt/format.h>
#include <torch/library.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/process/named_makers.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

using Tensors = NativeCode::Tensors;

using Makers = NamedMakers<NativeCode>;

Makers& makers() {
  static Makers all({.name = "native stage", .adds_by = "register_native_stage"});
  return all;
}

/// The code that a call of this thread means. The dispatcher calls a free function.
thread_local const NativeCode* called = nullptr;  // NOLINT: likewise

Tensors run_called(const std::string& name,
                   at::TensorList values,
                   at::TensorList parameters,
                   at::TensorList /*buffers*/,
                   bool training) {
  if (called == nullptr) {
    throw Error(Errc::UsageArgument,
                fmt::format("the native stage \"{}\" was called as an operator: call it by "
                            "sc::native_stage",
                            name));
  }
  const NativeCode& code = *called;
  const std::vector<bool> modes = code.modes();
  const auto restore = c10::make_scope_exit([&] {
    if (code.modes() != modes) {
      code.set_modes(modes);
    }
  });
  code.train(training);
  return run_native(native_text(name), code, values.vec(), parameters.vec());
}

Tensors tensors_of(const std::vector<NamedTensor>& named) {
  Tensors tensors;
  for (const NamedTensor& one : named) {
    tensors.push_back(one.tensor);
  }
  return tensors;
}

}  // namespace

void register_native_maker(const std::string& name, NativeMaker make) {
  makers().add(name, std::move(make));
}

NativeCode make_native(const std::string& name) {
  const NativeMaker make = makers().at(name);
  static std::mutex one_at_a_time;  // all ranks of a process draw from its default generator
  const std::scoped_lock lock(one_at_a_time);
  at::Generator random = default_generator();
  at::Tensor state;
  {
    const std::scoped_lock reading(random.mutex());
    state = random.get_state().clone();
  }
  const auto restore = c10::make_scope_exit([&] {
    const std::scoped_lock writing(random.mutex());
    random.set_state(state);
  });
  NativeCode code = make();
  require_no_hooks(name, code);
  return code;
}

std::string missing_native(const std::string& name) {
  return makers().missing(name);
}

namespace internal {

Tensors call_native(const std::string& name, const NativeCode& code, const Tensors& values) {
  if (const std::string missing = missing_native(name); !missing.empty()) {
    throw Error(Errc::UsageArgument, missing);
  }
  require_no_hooks(name, code);
  if (!AnnotationCounter::is_counting()) {
    return code.forward(values);  // no program is captured: a plain call
  }
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow(kNativeOperator.data(), "")
          .typed<Tensors(
              const std::string&, at::TensorList, at::TensorList, at::TensorList, bool)>();
  const auto before = std::exchange(called, &code);
  const auto restore = c10::make_scope_exit([&] { called = before; });
  return op.call(
      name, values, tensors_of(code.parameters), tensors_of(code.buffers), code.trains());
}

void refuse_made(const std::string& name, bool anything) {
  throw Error(Errc::UsageArgument,
              fmt::format("the maker of the native stage \"{}\" made {}: it must make a new module "
                          "each time",
                          name,
                          anything ? "a module that others have too" : "no module"));
}

}  // namespace internal
}  // namespace stagecraft

TORCH_LIBRARY(stagecraft, m) {
  m.def(
      "native_stage(str name, Tensor[] values, Tensor[] parameters, Tensor(a!)[] buffers, bool "
      "training) -> Tensor[]",
      &stagecraft::run_called);
}
