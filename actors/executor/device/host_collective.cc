#include "stagecraft/actors/executor/device/host_collective.h"

#include <algorithm>
#include <utility>

#include "stagecraft/compiler/libtorch/host_memory.h"

namespace stagecraft {
namespace {

class OnDevice final : public PendingResult {
 public:
  /// `buffer`: gets the result, if it is defined.
  OnDevice(std::unique_ptr<PendingResult> on_host, const c10::Device& device, at::Tensor buffer)
      : on_host_(std::move(on_host)), device_(device), buffer_(std::move(buffer)) {}

  [[nodiscard]] at::Tensor wait(Deadline deadline) override {
    const at::Tensor result = on_host_->wait(deadline);
    if (!buffer_.defined()) {
      return copy_to_device(result, device_);
    }
    copy_to_device(result, buffer_);
    return buffer_;
  }
  void abandon() override { on_host_->abandon(); }

 private:
  const std::unique_ptr<PendingResult> on_host_;
  const c10::Device device_;
  at::Tensor buffer_;
};

/// Returns a copy in pinned memory of the host; a buffer that is not flat, which every form
/// refuses, as it is.
at::Tensor host_copy(const at::Tensor& buffer) {
  return buffer.defined() && buffer.dim() == 1 && buffer.is_contiguous() ? copy_to_host(buffer)
                                                                         : buffer;
}

}  // namespace

/// Members that share a process hand tensors of devices over (Passing).
bool HostCollective::goes_through(const Group& group, const at::Tensor& contribution) const {
  return contribution.defined() &&
         (contribution.is_cpu() || std::ranges::all_of(group.ranks, [&](Rank rank) {
            return rank == transport_->self() || transport_->hands_over(rank);
          }));
}

/// `buffer`: gets the result, if it is defined.
std::unique_ptr<PendingResult> HostCollective::start(Operation operation,
                                                     const Group& group,
                                                     const Sequence& sequence,
                                                     at::Tensor contribution,
                                                     at::Tensor buffer) {
  if (goes_through(group, contribution)) {
    return (on_host_.*operation)(group, sequence, std::move(contribution));
  }
  auto pending = (on_host_.*operation)(group, sequence, host_copy(contribution));
  return std::make_unique<OnDevice>(std::move(pending), contribution.device(), std::move(buffer));
}

std::unique_ptr<PendingResult> HostCollective::all_reduce(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor buffer) {
  return start(&Collective::all_reduce, group, sequence, buffer, buffer);
}

std::unique_ptr<PendingResult> HostCollective::reduce_scatter(const Group& group,
                                                              const Sequence& sequence,
                                                              at::Tensor contribution) {
  return start(&Collective::reduce_scatter, group, sequence, std::move(contribution), at::Tensor());
}

std::unique_ptr<PendingResult> HostCollective::all_gather(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) {
  return start(&Collective::all_gather, group, sequence, std::move(contribution), at::Tensor());
}

std::unique_ptr<PendingResult> HostCollective::all_to_all(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) {
  return start(&Collective::all_to_all, group, sequence, std::move(contribution), at::Tensor());
}

}  // namespace stagecraft
