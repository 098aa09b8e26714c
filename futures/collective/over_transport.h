/// TransportCollective implements collectives with plain sends and receives between all members,
/// for groups on CPUs. It shares the rank's transport with the plan; negative edges are its own
/// (TG-1).
///
/// The waiting thread computes the result, never the thread on which a peer's buffer arrives. Each
/// member gets its data directly from the others and adds by itself. An all_reduce made of
/// reduce_scatter and all_gather would send less for three or more members, but its second half
/// would begin in the waits of the others, which breaks CL-4. Within a process, sending costs
/// nothing.
#pragma once

#include <memory>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

class TransportCollective final : public Collective {
 public:
  /// `board` shows the members that are waited for.
  explicit TransportCollective(std::shared_ptr<Transport> transport,
                               std::shared_ptr<WaitBoard> board = std::make_shared<WaitBoard>());

  [[nodiscard]] std::unique_ptr<PendingResult> all_reduce(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) override;
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
  struct Operation;

  [[nodiscard]] std::unique_ptr<PendingResult> start(const Operation& operation,
                                                     const Group& group,
                                                     const Sequence& sequence,
                                                     const at::Tensor& contribution);

  std::shared_ptr<Transport> transport_;
  std::shared_ptr<WaitBoard> board_;
};

}  // namespace stagecraft
