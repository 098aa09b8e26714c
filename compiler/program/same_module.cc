#include "stagecraft/compiler/program/same_module.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

[[noreturn]] void refuse_changed(const std::string& what) {
  throw Error(
      Errc::UsageArgument,
      fmt::format("the program must capture its module again, for a batch of another shape or for "
                  "an evaluation, but the module has changed since it was compiled: {}; restore "
                  "it, or compile again",
                  what));
}

void check_same(const std::vector<NamedTensor>& before,
                const std::vector<NamedTensor>& now,
                std::string_view what) {
  for (std::size_t i = 0; i < std::min(before.size(), now.size()); ++i) {
    const at::Tensor& a = before[i].tensor;
    const at::Tensor& b = now[i].tensor;
    if (before[i].name != now[i].name || a.sizes() != b.sizes() ||
        a.scalar_type() != b.scalar_type() || a.requires_grad() != b.requires_grad()) {
      refuse_changed(
          fmt::format("its {} {} was {}, {} of shape [{}]{}, and is {}, {} of shape "
                      "[{}]{}",
                      what,
                      i,
                      before[i].name,
                      at::toString(a.scalar_type()),
                      fmt::join(a.sizes(), ", "),
                      a.requires_grad() ? " that requires a gradient" : "",
                      now[i].name,
                      at::toString(b.scalar_type()),
                      fmt::join(b.sizes(), ", "),
                      b.requires_grad() ? " that requires a gradient" : ""));
    }
  }
  if (before.size() != now.size()) {
    refuse_changed(fmt::format("it had {} {}s and has {}", before.size(), what, now.size()));
  }
}

}  // namespace

void require_same_module(const CompiledProgram& model, const Workload& workload) {
  check_same(model.graph.parameters, workload.parameters, "parameter");
  check_same(model.graph.buffers, workload.buffers, "buffer");
  if (workload.modes.size() != model.modes.size()) {
    refuse_changed(fmt::format("it had {} modules, itself included, and has {}",
                               model.modes.size(),
                               workload.modes.size()));
  }
}

InModes::InModes(const Workload& workload, const std::vector<bool>& modes) : workload_(workload) {
  if (workload.modes == modes) {
    return;
  }
  if (!workload.set_modes) {
    throw Error(
        Errc::UsageArgument,
        "the module must be captured in other modes (training, evaluation) than it has, but "
        "it is const: compile a module that is not const, or set its modes before");
  }
  workload.set_modes(modes);
  changed_ = true;
}

InModes::~InModes() {
  if (changed_) {
    workload_.set_modes(workload_.modes);
  }
}

}  // namespace stagecraft
