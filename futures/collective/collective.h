/// Collective is the interface of one rank to the operations of a group of ranks.
///
/// Every member starts the same operation with the same group and sequence, continues to compute,
/// and waits for the result later. Buffers are flat: contiguous, of one dimension, and of equal
/// size and dtype on all members. The plan thread calls it; each form says which thread does the
/// work. tests/conformance/collective_conformance.h proves the contract for every form:
///
/// CL-1: results depend only on ranks, never on the order of arrival: parts lie in ascending order
///       of rank, and sums are added in that order, so all members have the same bits.
/// CL-2: a sequence is used once per group, and all members start a group's operations in one order
///       (NCCL pairs by it). A failed or timed out operation has used up its sequence, and the
///       epoch is over for the whole group: advance the transport before the next operation.
/// CL-3: a contribution is handed over. The caller does not write to it, or free it if it is
///       lendable, until every member's step is over, as this vote or the next shows. A result is
///       the caller's own. So is the buffer of an all_reduce or a reduce_scatter when its wait is
///       over.
/// CL-4: a result needs the start of every member and the wait of none. So several operations may
///       be in progress and be waited for in any order, and a member that continues to compute
///       delays no other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// Group lists the members: distinct ranks in ascending order. The id distinguishes groups with the
/// same members.
struct Group {
  std::vector<Rank> ranks;
  std::int32_t id = 0;

  friend bool operator==(const Group&, const Group&) = default;
};

/// Sequence identifies one of the group's collectives. It is equal on all members.
struct Sequence {
  PlanId plan;
  Epoch epoch;
  Submission submission;
  std::int32_t number = 0;  ///< position among the step's collectives of this group

  friend constexpr auto operator<=>(const Sequence&, const Sequence&) = default;
};

/// PendingResult is the result of an operation that this rank has started. Dropping it without a
/// wait harms no member if the contribution stays (CL-3).
class PendingResult {
 public:
  PendingResult(const PendingResult&) = delete;
  PendingResult(PendingResult&&) = delete;
  PendingResult& operator=(const PendingResult&) = delete;
  PendingResult& operator=(PendingResult&&) = delete;
  virtual ~PendingResult() = default;

  /// Waits for the result and returns it. Every member must have started the operation. A sum
  /// also waits until the others have read what this member lent. The rank's
  /// WaitBoard shows the members whose tensors are missing. For a sum over hosts it shows only the
  /// members from which this rank receives.
  /// Requires: the first call.
  /// Errors: ClusterTimeout names the members that the board shows at the deadline. WorkerAborted
  /// and TransportClosed come from the transport. If sizes or dtypes differ, or a member lacks
  /// memory, those that find it get Internal, which names two ranks that differ, or
  /// DeviceOutOfMemory. Those for which they have no sum get WorkerAborted with the same text.
  [[nodiscard]] virtual at::Tensor wait(Deadline deadline) = 0;

  /// Waits likewise and writes the result to `place`, a flat buffer of its size and dtype. On a CPU
  /// an all_gather whose contribution lies there needs no other memory, and leaves that part alone.
  virtual void wait_into(Deadline deadline, const at::Tensor& place) {
    place.copy_(wait(deadline));
  }

  /// Gives up the operation together with the step. From now on this member neither reads nor
  /// writes the buffer, and other members may wait for its part until their deadline.
  virtual void abandon() = 0;

 protected:
  PendingResult() = default;
};

/// Every operation hands `contribution` over and returns without waiting.
/// Requires: the caller is a member; group.ranks is ascending and without repetition; a flat
/// buffer.
/// Errors: Internal if a requirement does not hold, before anything is sent; TransportClosed.
class Collective {
 public:
  Collective(const Collective&) = delete;
  Collective(Collective&&) = delete;
  Collective& operator=(const Collective&) = delete;
  Collective& operator=(Collective&&) = delete;
  virtual ~Collective() = default;

  /// Replaces the buffer by the sum of all members' buffers, and returns it.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> all_reduce(const Group& group,
                                                                  const Sequence& sequence,
                                                                  at::Tensor buffer) = 0;

  /// Returns this member's part of the sum, with the same bits: the group's i-th rank gets the i-th
  /// of equal parts.
  /// Requires: the group's size divides the buffer's.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> reduce_scatter(const Group& group,
                                                                      const Sequence& sequence,
                                                                      at::Tensor contribution) = 0;

  /// Returns all contributions, one after the other.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> all_gather(const Group& group,
                                                                  const Sequence& sequence,
                                                                  at::Tensor contribution) = 0;

  /// Returns the parts for this member, one after the other: the i-th of a contribution's equal
  /// parts goes to the group's i-th rank.
  /// Requires: the group's size divides the buffer's.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> all_to_all(const Group& group,
                                                                  const Sequence& sequence,
                                                                  at::Tensor contribution) = 0;

 protected:
  Collective() = default;
};

}  // namespace stagecraft
