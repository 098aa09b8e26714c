#include "stagecraft/actors/executor/run/step_losses.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include <ATen/ops/cat.h>

#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {

void StepLosses::add(Microbatch microbatch, at::Tensor loss) {
  unread_.emplace_back(microbatch, std::move(loss));
}

const std::vector<MicrobatchLoss>& StepLosses::read() {
  if (unread_.empty()) {
    return read_;
  }
  if (!is_program_device(unread_.front().second.device())) {
    fetch();
  }
  for (const auto& [microbatch, loss] : unread_) {
    read_.push_back({microbatch, loss.item<double>()});
  }
  unread_.clear();
  std::ranges::sort(read_, {}, &MicrobatchLoss::microbatch);
  return read_;
}

/// Replaces the losses by copies in the host's memory. One copy for all: each waits for the device.
void StepLosses::fetch() {
  std::vector<at::Tensor> losses;
  std::ranges::transform(unread_, std::back_inserter(losses), [](const auto& unread) {
    return unread.second.reshape({1});
  });
  const at::Tensor values = at::cat(losses).cpu();
  for (std::size_t i = 0; i < unread_.size(); ++i) {
    unread_[i].second = values[static_cast<std::int64_t>(i)];
  }
}

}  // namespace stagecraft
