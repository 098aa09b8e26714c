/// TransportCollective: collectives as plain sends and receives between all members, for groups
/// that live on CPUs and exchange little. It shares the rank's transport with the plan; edges below
/// 0 are its own (TG-1).
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

class TransportCollective final : public Collective {
 public:
  /// `board` shows which members a call still waits for.
  explicit TransportCollective(std::shared_ptr<Transport> transport,
                               std::shared_ptr<WaitBoard> board = std::make_shared<WaitBoard>());

  [[nodiscard]] std::vector<at::Tensor> all_gather(const Group& group,
                                                   const Sequence& sequence,
                                                   at::Tensor contribution,
                                                   Deadline deadline) override;

 private:
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<WaitBoard> board_;
};

}  // namespace stagecraft
