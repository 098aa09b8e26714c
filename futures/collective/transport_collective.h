/// TransportCollective implements collectives with plain sends and receives between all members,
/// for groups on CPUs, and for groups on accelerators of one process. It shares the rank's
/// transport with the plan; negative edges are its own (TG-1).
#pragma once

#include <functional>
#include <memory>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/collective/job_thread.h"
#include "stagecraft/futures/collective/passing.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

class TransportCollective final : public Collective {
 public:
  /// `board` shows the members for which this rank waits. `begin_thread`: runs first on the thread
  /// that adds; may be empty. `passing`: null for ranks on CPUs.
  explicit TransportCollective(std::shared_ptr<Transport> transport,
                               std::shared_ptr<WaitBoard> board = std::make_shared<WaitBoard>(),
                               std::function<void()> begin_thread = {},
                               std::shared_ptr<Passing> passing = nullptr);

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
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<WaitBoard> board_;
  const std::shared_ptr<Passing> passing_;
  const std::shared_ptr<JobThread> thread_;
};

}  // namespace stagecraft
