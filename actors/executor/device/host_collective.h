/// HostCollective runs the collectives of tensors on an accelerator in the host's memory, by
/// another form. It passes on tensors of the CPU, and all tensors of a group in one process.
///
/// A rank has one, around the form for CPUs. NcclCollective takes over the groups that it connects.
/// For the others the host waits for the current stream when an operation starts, and its result is
/// copied to the device when it is awaited. Both cross in pinned memory.
#pragma once

#include <memory>
#include <utility>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class HostCollective final : public Collective {
 public:
  /// `on_host` outlives it.
  HostCollective(Collective& on_host, std::shared_ptr<const Transport> transport)
      : on_host_(on_host), transport_(std::move(transport)) {}

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
  using Operation = std::unique_ptr<PendingResult> (Collective::*)(const Group&,
                                                                   const Sequence&,
                                                                   at::Tensor);

  [[nodiscard]] std::unique_ptr<PendingResult> start(Operation operation,
                                                     const Group& group,
                                                     const Sequence& sequence,
                                                     at::Tensor contribution,
                                                     at::Tensor buffer);
  [[nodiscard]] bool goes_through(const Group& group, const at::Tensor& contribution) const;

  Collective& on_host_;
  const std::shared_ptr<const Transport> transport_;
};

}  // namespace stagecraft
