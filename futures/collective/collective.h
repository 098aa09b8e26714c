/// Collective: what a group of ranks does together. One object is one rank's side of it.
///
/// Every member starts the same operation with the same group and sequence, goes on computing, and
/// waits for the result later. Buffers are flat: contiguous, of one dimension, and of one size and
/// dtype on all members. The work is done where a result is waited for, never on the thread on
/// which a peer's buffer happens to arrive. Called from the plan thread. The contract, proved for
/// every form by tests/conformance/collective_conformance.h:
///
/// CL-1: results depend on ranks only, never on who came first: parts lie in ascending order of
///       rank, and sums are added in that order, so that all members have the same bits.
/// CL-2: a sequence is used once per group, and all members start a group's operations in one order
///       (NCCL pairs by it). A failed or timed out operation has spent its sequence, and the epoch
///       is over for the whole group: advance the transport before the next one.
/// CL-3: a contribution is handed over as by Transport::send: nobody writes to it afterwards. A
///       result is the caller's own.
/// CL-4: a result needs the start of every member and the wait of none. So several operations may
///       be under way and be waited for in any order, and who computes on meanwhile delays nobody.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// Who takes part: distinct ranks in ascending order. The id tells groups apart that share members.
struct Group {
  std::vector<Rank> ranks;
  std::int32_t id = 0;

  friend bool operator==(const Group&, const Group&) = default;
};

/// Which of the group's collectives this is; equal on all members.
struct Sequence {
  PlanId plan;
  Epoch epoch;
  Submission submission;
  std::int32_t number = 0;  ///< position among the step's collectives of this group

  friend constexpr auto operator<=>(const Sequence&, const Sequence&) = default;
};

/// The result of an operation that this rank has started. To let it go unwaited harms no member.
class PendingResult {
 public:
  PendingResult(const PendingResult&) = delete;
  PendingResult(PendingResult&&) = delete;
  PendingResult& operator=(const PendingResult&) = delete;
  PendingResult& operator=(PendingResult&&) = delete;
  virtual ~PendingResult() = default;

  /// Waits until every member has started the operation, the missing ones shown on the rank's
  /// WaitBoard; computes the result on the calling thread and returns it. Called once.
  /// Errors: ClusterTimeout, naming the members still missing at the deadline; the transport's own
  ///         (WorkerAborted, TransportClosed); Internal, on all members, when sizes or dtypes
  ///         differ, naming two ranks.
  [[nodiscard]] virtual at::Tensor wait(Deadline deadline) = 0;

 protected:
  PendingResult() = default;
};

/// All operations hand `contribution` over and return without waiting for anybody.
/// Requires: the caller is a member; group.ranks is ascending and without repetition; a flat
/// buffer.
/// Errors: Internal when that is not so, before anything is sent; TransportClosed.
class Collective {
 public:
  Collective(const Collective&) = delete;
  Collective(Collective&&) = delete;
  Collective& operator=(const Collective&) = delete;
  Collective& operator=(Collective&&) = delete;
  virtual ~Collective() = default;

  /// The sum of all contributions.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> all_reduce(const Group& group,
                                                                  const Sequence& sequence,
                                                                  at::Tensor contribution) = 0;

  /// This member's part of that sum, with the same bits: the group's i-th rank gets the i-th of
  /// equal parts.
  /// Requires: the group's size divides the buffer's.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> reduce_scatter(const Group& group,
                                                                      const Sequence& sequence,
                                                                      at::Tensor contribution) = 0;

  /// All contributions, one behind the other.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> all_gather(const Group& group,
                                                                  const Sequence& sequence,
                                                                  at::Tensor contribution) = 0;

  /// The parts meant for this member, one behind the other: the i-th of a contribution's equal
  /// parts goes to the group's i-th rank.
  /// Requires: the group's size divides the buffer's.
  [[nodiscard]] virtual std::unique_ptr<PendingResult> all_to_all(const Group& group,
                                                                  const Sequence& sequence,
                                                                  at::Tensor contribution) = 0;

 protected:
  Collective() = default;
};

}  // namespace stagecraft
