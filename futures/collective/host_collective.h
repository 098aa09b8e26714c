/// HostCollective runs the collectives of tensors on an accelerator in the host's memory, by
/// another form. Tensors of the CPU go through unchanged.
///
/// A rank has one, around the form for CPUs. NcclCollective takes over the groups that it connects.
/// The host waits for the current stream when an operation starts, and copies its result when it is
/// awaited.
#pragma once

#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

class HostCollective final : public Collective {
 public:
  /// `on_host` outlives it.
  explicit HostCollective(Collective& on_host) : on_host_(on_host) {}

  [[nodiscard]] std::unique_ptr<PendingResult> all_reduce(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor buffer) override;
  [[nodiscard]] std::unique_ptr<PendingResult> reduce_scatter(const Group& group,
                                                              const Sequence& sequence,
                                                              at::Tensor contribution) override;
  [[nodiscard]] std::unique_ptr<PendingResult> all_gather(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) override;
  [[nodiscard]] std::unique_ptr<PendingResult> all_to_all(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) override;

 private:
  Collective& on_host_;
};

}  // namespace stagecraft
