#include "stagecraft/actors/executor/replica_sum.h"

#include <utility>

#include <ATen/core/grad_mode.h>

#include "stagecraft/base/check.h"
#include "stagecraft/futures/collective/all_reduce.h"

namespace stagecraft {
namespace {

constexpr std::int32_t kFirstReplicaGroup = 1;  // group 0 is all ranks, for the vote

}  // namespace

void sum_over_replicas(Collective& collective,
                       const Plan& plan,
                       int number,
                       const std::vector<const Bucket*>& mine,
                       const Sequence& sequence,
                       Deadline deadline) {
  SC_CHECK(!mine.empty(), "a rank of a replica group holds one of its stages");
  const at::NoGradGuard no_grad;
  const Group group{.ranks = plan.replica_groups[static_cast<std::size_t>(number)].ranks,
                    .id = kFirstReplicaGroup + number};
  for (std::size_t b = 0; b < mine.front()->flat_gradients().size(); ++b) {
    // A copy: peers read it while this rank writes the sum.
    at::Tensor own = mine.front()->flat_gradients()[b].clone();
    for (std::size_t i = 1; i < mine.size(); ++i) {
      own.add_(mine[i]->flat_gradients()[b]);
    }
    Sequence of_buffer = sequence;
    of_buffer.number = static_cast<std::int32_t>(b);
    const at::Tensor sum = all_reduce(collective, group, of_buffer, std::move(own), deadline);
    for (const Bucket* bucket : mine) {
      bucket->flat_gradients()[b].copy_(sum);
    }
  }
}

}  // namespace stagecraft
