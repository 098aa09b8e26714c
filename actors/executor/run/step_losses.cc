#include "stagecraft/actors/executor/run/step_losses.h"

#include <algorithm>

namespace stagecraft {

void StepLosses::add(Microbatch microbatch, at::Tensor loss) {
  unread_.emplace_back(microbatch, std::move(loss));
}

const std::vector<MicrobatchLoss>& StepLosses::read() {
  for (const auto& [microbatch, loss] : unread_) {
    read_.push_back({microbatch, loss.item<double>()});
  }
  unread_.clear();
  std::ranges::sort(read_, {}, &MicrobatchLoss::microbatch);
  return read_;
}

}  // namespace stagecraft
