#include "stagecraft/futures/collective/host_collective.h"

#include <utility>

namespace stagecraft {
namespace {

class OnDevice final : public PendingResult {
 public:
  /// `buffer`: gets the result, if it is defined.
  OnDevice(std::unique_ptr<PendingResult> on_host, const c10::Device& device, at::Tensor buffer)
      : on_host_(std::move(on_host)), device_(device), buffer_(std::move(buffer)) {}

  [[nodiscard]] at::Tensor wait(Deadline deadline) override {
    const at::Tensor result = on_host_->wait(deadline);
    return buffer_.defined() ? buffer_.copy_(result) : result.to(device_);
  }
  void abandon() override { on_host_->abandon(); }

 private:
  const std::unique_ptr<PendingResult> on_host_;
  const c10::Device device_;
  at::Tensor buffer_;
};

}  // namespace

std::unique_ptr<PendingResult> HostCollective::all_reduce(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor buffer) {
  if (buffer.is_cpu()) {
    return on_host_.all_reduce(group, sequence, std::move(buffer));
  }
  const c10::Device device = buffer.device();
  auto pending = on_host_.all_reduce(group, sequence, buffer.cpu());
  return std::make_unique<OnDevice>(std::move(pending), device, std::move(buffer));
}

std::unique_ptr<PendingResult> HostCollective::reduce_scatter(const Group& group,
                                                              const Sequence& sequence,
                                                              at::Tensor contribution) {
  const c10::Device device = contribution.device();
  auto pending = on_host_.reduce_scatter(group, sequence, contribution.cpu());
  return std::make_unique<OnDevice>(std::move(pending), device, at::Tensor());
}

std::unique_ptr<PendingResult> HostCollective::all_gather(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) {
  const c10::Device device = contribution.device();
  auto pending = on_host_.all_gather(group, sequence, contribution.cpu());
  return std::make_unique<OnDevice>(std::move(pending), device, at::Tensor());
}

std::unique_ptr<PendingResult> HostCollective::all_to_all(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) {
  const c10::Device device = contribution.device();
  auto pending = on_host_.all_to_all(group, sequence, contribution.cpu());
  return std::make_unique<OnDevice>(std::move(pending), device, at::Tensor());
}

}  // namespace stagecraft
