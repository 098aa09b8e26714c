/// PendingGather is an operation whose result is the concatenation of all tensors that this member
/// gets. The waiting thread concatenates them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/collective/passing.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft::collective {

class PendingGather final : public PendingResult {
 public:
  /// `name`: the operation's name, for messages; `arrivals`: by rank, this member's own included.
  PendingGather(std::string name,
                std::vector<Rank> ranks,
                std::vector<Arrival> arrivals,
                std::shared_ptr<Passing> passing,
                std::shared_ptr<WaitBoard> board);

  [[nodiscard]] at::Tensor wait(Deadline deadline) override;
  void wait_into(Deadline deadline, const at::Tensor& place) override;
  void abandon() override { arrivals_.clear(); }

 private:
  [[nodiscard]] std::vector<at::Tensor> arrived(Deadline deadline);

  const std::string name_;
  const std::vector<Rank> ranks_;
  std::vector<Arrival> arrivals_;  // empty after the wait
  const std::shared_ptr<Passing> passing_;
  const std::shared_ptr<WaitBoard> board_;
};

}  // namespace stagecraft::collective
