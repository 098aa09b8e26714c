/// Collective: what a group of ranks does together. One object is one rank's side of it.
///
/// Every member of the group calls the same operation with the same group and sequence; a call
/// returns when every member has called. Called from the plan thread.
/// CL-1: results depend on ranks only, never on who arrived first: contributions come in ascending
///      order of rank, and whoever sums them sums in that order.
/// CL-2: a sequence is used once per group. A call that failed or timed out has spent it, and the
///      epoch is over for the whole group: advance the transport before calling again.
/// CL-3: contributions are handed over as by Transport::send: nobody writes to one afterwards,
///      results are read only.
#pragma once

#include <cstdint>
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

class Collective {
 public:
  Collective(const Collective&) = delete;
  Collective(Collective&&) = delete;
  Collective& operator=(const Collective&) = delete;
  Collective& operator=(Collective&&) = delete;
  virtual ~Collective() = default;

  /// Returns the contribution of every member, in ascending order of rank, the caller's own among
  /// them. Shapes and dtypes may differ from member to member.
  /// Requires: the caller is a member; group.ranks is ascending and without repetition.
  /// Errors: Internal when it is not; ClusterTimeout, naming the members still missing at the
  ///         deadline; the transport's own (WorkerAborted, TransportClosed).
  [[nodiscard]] virtual std::vector<at::Tensor> all_gather(const Group& group,
                                                           const Sequence& sequence,
                                                           at::Tensor contribution,
                                                           Deadline deadline) = 0;

 protected:
  Collective() = default;
};

}  // namespace stagecraft
