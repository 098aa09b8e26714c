#include "stagecraft/actors/executor/device/libtorch_gate.h"

#include <memory>

#include <ATen/record_function.h>
#include <torch/csrc/autograd/engine.h>

#include "stagecraft/base/process/process_end.h"

namespace stagecraft {
namespace {

std::unique_ptr<at::ObserverContext> stop_here(const at::RecordFunction&) {
  process_end::gate();
  return nullptr;
}

}  // namespace

void arm_libtorch_gate() {
  static const bool once = [] {
    (void)torch::autograd::Engine::get_default_engine();  // makes a static object of LibTorch
    process_end::when_it_begins(
        [] { at::addGlobalCallback(at::RecordFunctionCallback(&stop_here)); });
    return true;
  }();
  (void)once;
  process_end::arm();
}

}  // namespace stagecraft
