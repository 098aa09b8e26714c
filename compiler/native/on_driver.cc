#include "stagecraft/compiler/native/on_driver.h"

#include <algorithm>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/ScopeExit.h>
#include <fmt/format.h>
#include <torch/library.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/module/markers.h"

namespace stagecraft {
namespace {

using Tensors = DriverCode::Tensors;

/// The code that a call of this thread means. The dispatcher calls a free function.
thread_local std::shared_ptr<const DriverCode> code_in_call;  // NOLINT: likewise

Tensors run_code_in_call(const std::string& name, at::TensorList values) {
  if (code_in_call == nullptr) {
    throw Error(Errc::UsageArgument,
                fmt::format("the driver code \"{}\" was called as an operator: call it by "
                            "sc::on_driver",
                            name));
  }
  return run_native(code_in_call->name(), driver_code(code_in_call->call()), values.vec(), {});
}

/// Keeps OD-1.
void require_gradients(const std::string& name, const Tensors& values, const Tensors& results) {
  const auto needs = [](const at::Tensor& tensor) { return tensor.requires_grad(); };
  if (!at::GradMode::is_enabled() || std::ranges::none_of(values, needs)) {
    return;
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].requires_grad() && results[i].is_floating_point()) {
      throw Error(Errc::CompileCapture,
                  fmt::format("result {} of the driver code \"{}\" has no gradient, and its "
                              "tensors need one: compute it by operators of LibTorch that have a "
                              "derivative, or give the code tensors without gradient (detach())",
                              i,
                              name));
    }
  }
}

}  // namespace

namespace internal {

std::shared_ptr<const DriverCode> driver_code_in_call() {
  return code_in_call;
}

Tensors call_on_driver(const std::string& name, DriverCode::Call call, const Tensors& values) {
  if (name.empty()) {
    throw Error(Errc::UsageArgument, "driver code needs a name, for messages and drawings");
  }
  if (!AnnotationCounter::is_counting()) {
    return call(values);  // no program is captured: a plain call
  }
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow(kDriverOperator.data(), "")
                             .typed<Tensors(const std::string&, at::TensorList)>();
  const auto before =
      std::exchange(code_in_call, std::make_shared<const DriverCode>(name, std::move(call)));
  const auto restore = c10::make_scope_exit([&] { code_in_call = before; });
  Tensors results = op.call(name, values);
  require_gradients(name, values, results);
  return results;
}

}  // namespace internal
}  // namespace stagecraft

TORCH_LIBRARY_FRAGMENT(stagecraft, m) {
  m.def("on_driver(str name, Tensor[] values) -> Tensor[]", &stagecraft::run_code_in_call);
}
