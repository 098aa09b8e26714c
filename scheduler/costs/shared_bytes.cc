#include "stagecraft/scheduler/costs/shared_bytes.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace stagecraft {
namespace {

/// Returns the bytes that a rank saves. `trained`: bytes of weights that train; `states`: of their
/// optimizer's state.
double saved(double trained, double states, Sharing sharing, int copies) {
  const double shared = (sharing >= Sharing::States ? states : 0) +
                        (sharing >= Sharing::Gradients ? trained : 0) +
                        (sharing >= Sharing::Weights ? trained : 0);
  return shared * (copies - 1) / copies;
}

}  // namespace

double shared_bytes(const FixedBytes& fixed, Sharing sharing, int copies) {
  return fixed.all - saved(fixed.trained, fixed.states, sharing, copies);
}

double borrowed_bytes(std::span<const double> gradients, Sharing sharing) {
  if (sharing < Sharing::Gradients) {
    return 0;
  }
  std::vector<double> buckets;
  for (double bytes : gradients) {
    for (int bucket = 0; bucket < 2 && bytes > 0; ++bucket) {
      buckets.push_back(std::min(bytes, kSharedBucket));
      bytes -= kSharedBucket;
    }
  }
  std::ranges::sort(buckets, std::greater<>());
  buckets.resize(std::min<std::size_t>(buckets.size(), 2));
  double sum = 0;
  for (const double bucket : buckets) {
    sum += bucket * (sharing == Sharing::Weights ? 2 : 1);
  }
  return sum;
}

Costs with_shared_parameters(Costs costs, Sharing sharing, int copies) {
  for (ParameterCost& parameter : costs.parameters) {
    const double trained = parameter.trained();
    const double states = trained > 0 ? parameter.held - 2 * trained : 0;
    parameter.held -= saved(trained, states, sharing, copies);
    if (sharing == Sharing::Weights && trained > 0) {
      parameter.bytes /= copies;
    }
  }
  return costs;
}

}  // namespace stagecraft
