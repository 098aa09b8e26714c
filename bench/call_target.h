/// CallTarget is the class of the actors that actor_calls calls. The benchmark's program is its own
/// worker, so main() knows it too.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>

#include "stagecraft/actors/remote/host/actor_type.h"

namespace stagecraft::bench {

class CallTarget {
 public:
  std::int64_t same(std::int64_t value) { return value; }
  at::Tensor make(std::int64_t floats) { return at::full({floats}, 1.0, at::kFloat); }
  double first_of(const at::Tensor& tensor) { return *tensor.const_data_ptr<float>(); }

  using Remote =
      stagecraft::Remote<CallTarget(), &CallTarget::same, &CallTarget::make, &CallTarget::first_of>;
};

}  // namespace stagecraft::bench
