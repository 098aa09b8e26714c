#include "stagecraft/actors/executor/commit/replica_sum.h"

#include <cstddef>
#include <memory>
#include <utility>

#include <ATen/core/grad_mode.h>

#include "stagecraft/base/check.h"

namespace stagecraft {

void sum_over_replicas(Collective& collective,
                       const Group& group,
                       const std::vector<const Bucket*>& mine,
                       const Sequence& sequence,
                       Deadline deadline) {
  SC_CHECK(!mine.empty(), "a rank of a replica group holds one of its stages");
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor>& gradients = mine.front()->flat_gradients();
  std::vector<std::unique_ptr<PendingResult>> sums;
  for (std::size_t b = 0; b < gradients.size(); ++b) {
    // Sum a copy: peers read it while this rank writes the result.
    at::Tensor own = gradients[b].clone();
    for (std::size_t i = 1; i < mine.size(); ++i) {
      own.add_(mine[i]->flat_gradients()[b]);
    }
    Sequence of_buffer = sequence;
    of_buffer.number = static_cast<std::int32_t>(b);
    sums.push_back(collective.all_reduce(group, of_buffer, std::move(own)));
  }
  for (std::size_t b = 0; b < gradients.size(); ++b) {
    const at::Tensor sum = sums[b]->wait(deadline);
    for (const Bucket* bucket : mine) {
      bucket->flat_gradients()[b].copy_(sum);
    }
  }
}

}  // namespace stagecraft
