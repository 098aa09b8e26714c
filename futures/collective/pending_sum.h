/// PendingSum is an operation that adds the members' buffers in parts. Each member owns one part.
///
///     every member lends part i to member i --> member i adds its parts in the order of ranks
///         --> reduce_scatter: member i says so to all others
///         --> all_reduce: member i lends the sum to all others --> each copies it and says so
///
/// So a member sends and receives 2 (n - 1) / n of a buffer, or half of that in a reduce_scatter.
/// An all_reduce of a group that spans hosts may pass sums from host to host (sum_route.h). Members
/// that share memory read parts and sums in place (Transport::lend). The JobThread adds and copies
/// parts as soon as they have arrived. So a member that computes meanwhile delays no other (CL-4).
/// On accelerators the thread's stream does that, and each tensor that is handed over carries the
/// point after which it can be read, or after which the reader is done (Passing).
/// SUM-1: a member overwrites a part that it has lent only after it has received a sum of that
///        part: the sum shows that the reader is done. The member's operation ends when all
///        readers are done with what it lent.
/// Source: Thakur et al., Optimization of collective communication operations in MPICH, section 4.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/collective/job_thread.h"
#include "stagecraft/futures/collective/passing.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft::collective {

class PendingSum final : public PendingResult {
 public:
  enum class Kind : std::uint8_t { AllReduce, ReduceScatter };

  /// Starts the operation.
  PendingSum(Kind kind,
             const Group& group,
             const Sequence& sequence,
             const at::Tensor& buffer,
             const std::shared_ptr<Transport>& transport,
             std::shared_ptr<Passing> passing,
             const std::shared_ptr<JobThread>& thread,
             std::shared_ptr<WaitBoard> board);

  [[nodiscard]] at::Tensor wait(Deadline deadline) override;
  void abandon() override;

 private:
  class Work;

  std::shared_ptr<Work> work_;  // null after the wait
  const std::string name_;
  const std::shared_ptr<Passing> passing_;
  const std::shared_ptr<WaitBoard> board_;
};

}  // namespace stagecraft::collective
