#include "stagecraft/actors/executor/run/task_gate.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/executor/step/dispatch_tags.h"
#include "stagecraft/actors/executor/step/dispatched_values.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/printable.h"

namespace stagecraft {

at::Tensor TaskGate::released(std::size_t number) const {
  const Future<at::Tensor> release = transport_.receive(kDriver, release_tag(step_, number));
  if (!release.ready() &&
      !board_.wait({{kDriver, release}}, board_.clock().now() + patience(options_))) {
    throw Error(Errc::ClusterTimeout, "the driver did not release the task in time");
  }
  const at::Tensor said = release.get().contiguous();
  if (said.scalar_type() == at::kByte && said.numel() > 0) {
    throw Error(Errc::UsageArgument,
                printable({static_cast<const char*>(said.const_data_ptr()), said.nbytes()}));
  }
  return said;
}

void TaskGate::wait(std::size_t position) const {
  (void)released(position);
}

std::optional<std::size_t> TaskGate::next() {
  const at::Tensor said = released(decided_++);
  if (said.scalar_type() != at::kLong || said.numel() != 1) {
    throw Error(Errc::WireFormat, "the driver released a task and did not name it");
  }
  const std::int64_t position = said.item<std::int64_t>();
  return position < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(position));
}

void TaskGate::tell(std::size_t position,
                    const Instruction& instruction,
                    const Slots& slots) const {
  std::vector<DispatchedValue> values;
  MadeValues kept;
  for (const SlotUse& made : instruction.writes) {
    const bool gradient = made.value.role == Role::Gradient;
    if (options_.tells_values && (gradient || made.value.role == Role::Activation)) {
      if (const at::Tensor& tensor = slots.tensor(made.slot); tensor.defined()) {
        if (options_.column_tensors) {
          const bool is_state = std::ranges::any_of(
              stages_, [&](const StageRuntime& stage) { return stage.shares_state(tensor); });
          kept[{static_cast<std::int32_t>(values.size()), {}}] = is_state ? tensor.clone() : tensor;
        }
        values.push_back(describe(tensor, gradient));
      }
    }
  }
  if (!kept.empty()) {
    values_.put(
        {step_.plan, transport_.self(), step_.submission, static_cast<std::int32_t>(position)},
        std::move(kept));
  }
  transport_.send(kDriver, done_tag(step_, position), pack_values(values));
}

}  // namespace stagecraft
