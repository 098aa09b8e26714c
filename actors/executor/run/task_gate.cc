#include "stagecraft/actors/executor/run/task_gate.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/executor/step/dispatch_tags.h"
#include "stagecraft/actors/executor/step/dispatched_values.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/printable.h"

namespace stagecraft {

void TaskGate::wait(std::size_t position) const {
  const Future<at::Tensor> release = transport_.receive(kDriver, release_tag(step_, position));
  if (!release.ready() &&
      !board_.wait({{kDriver, release}}, board_.clock().now() + patience(options_))) {
    throw Error(Errc::ClusterTimeout, "the driver did not release the task in time");
  }
  const at::Tensor reason = release.get().contiguous();
  if (reason.numel() > 0) {
    throw Error(Errc::UsageArgument,
                printable({static_cast<const char*>(reason.const_data_ptr()), reason.nbytes()}));
  }
}

void TaskGate::tell(std::size_t position,
                    const Instruction& instruction,
                    const Slots& slots) const {
  std::vector<DispatchedValue> values;
  for (const SlotUse& made : instruction.writes) {
    const bool gradient = made.value.role == Role::Gradient;
    if (options_.tells_values && (gradient || made.value.role == Role::Activation)) {
      if (const at::Tensor& tensor = slots.tensor(made.slot); tensor.defined()) {
        values.push_back(describe(tensor, gradient));
      }
    }
  }
  transport_.send(kDriver, done_tag(step_, position), pack_values(values));
}

}  // namespace stagecraft
