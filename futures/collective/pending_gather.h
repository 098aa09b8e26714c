/// PendingGather: an operation whose result is all tensors that this member gets, one after the
/// other. The waiting thread puts them together.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft::collective {

class PendingGather final : public PendingResult {
 public:
  /// `name`: of the operation, for messages; `arrivals`: by rank, with this member's own.
  PendingGather(std::string name,
                std::vector<Rank> ranks,
                std::vector<Arrival> arrivals,
                std::shared_ptr<WaitBoard> board);

  [[nodiscard]] at::Tensor wait(Deadline deadline) override;
  void abandon() override { arrivals_.clear(); }

 private:
  const std::string name_;
  const std::vector<Rank> ranks_;
  std::vector<Arrival> arrivals_;  // empty after the wait
  const std::shared_ptr<WaitBoard> board_;
};

}  // namespace stagecraft::collective
