#include "stagecraft/futures/collective/all_reduce.h"

#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "stagecraft/base/check.h"

namespace stagecraft {

at::Tensor all_reduce(Collective& collective,
                      const Group& group,
                      const Sequence& sequence,
                      at::Tensor contribution,
                      Deadline deadline) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gathered =
      collective.all_gather(group, sequence, std::move(contribution), deadline);
  for (std::size_t i = 1; i < gathered.size(); ++i) {
    SC_CHECK(gathered[i].sizes() == gathered[0].sizes() &&
                 gathered[i].scalar_type() == gathered[0].scalar_type(),
             "rank " + to_string(group.ranks[i]) +
                 " reduces a tensor of another shape or type than rank " +
                 to_string(group.ranks[0]));
  }
  if (gathered.size() == 1) {
    return gathered[0];
  }
  at::Tensor sum = gathered[0] + gathered[1];
  for (std::size_t i = 2; i < gathered.size(); ++i) {
    sum.add_(gathered[i]);
  }
  return sum;
}

}  // namespace stagecraft
