#include "stagecraft/actors/executor/run/step_losses.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <ATen/ops/cat.h>

namespace stagecraft {

void StepLosses::add(Microbatch microbatch, at::Tensor loss) {
  unread_.emplace_back(microbatch, std::move(loss));
}

const std::vector<MicrobatchLoss>& StepLosses::read() {
  if (unread_.empty()) {
    return read_;
  }
  std::vector<at::Tensor> losses;
  std::ranges::transform(unread_, std::back_inserter(losses), [](const auto& unread) {
    return unread.second.reshape({1});
  });
  // One copy: each waits for the device.
  const at::Tensor values = at::cat(losses).to(at::kCPU, at::kDouble);
  const auto* value = values.const_data_ptr<double>();
  for (const auto& [microbatch, loss] : unread_) {
    read_.push_back({microbatch, *value++});
  }
  unread_.clear();
  std::ranges::sort(read_, {}, &MicrobatchLoss::microbatch);
  return read_;
}

}  // namespace stagecraft
