#include "stagecraft/compiler/module/metric.h"

#include <atomic>

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>

namespace stagecraft {

std::uint64_t Metric::next_object() {
  static std::atomic<std::uint64_t> count = 0;
  return ++count;
}

at::Tensor accuracy(const at::Tensor& outputs, const at::Tensor& labels) {
  return (outputs.argmax(-1) == labels).to(at::kDouble).mean();
}

}  // namespace stagecraft
