#include "stagecraft/actors/profile/overhead.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/median.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/gpipe.h"

namespace stagecraft {
namespace {

constexpr int kSteps = 40;
constexpr int kFew = 2, kMany = 34;  // microbatches

/// Returns the median of a step's seconds.
double step_seconds(int microbatches) {
  const at::Tensor weight = at::ones({1}).set_requires_grad(true);
  const at::Tensor input = at::ones({microbatches, 1});
  Workload workload;
  workload.parameters = {{"weight", weight}};
  workload.forward = [weight](const std::vector<at::Tensor>& inputs) {
    return std::vector<at::Tensor>{at::mul(inputs[0], weight)};
  };
  workload.loss = [](const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>&) {
    return at::mean(outputs[0]);
  };
  const Program program = internal::compile_workload(
      workload,
      {.inputs = {input}, .labels = {}, .loss = {}, .microbatches = microbatches},
      ModuleSource());
  Trainer trainer(Cluster::local(1), program, gpipe(1, microbatches), Sgd{});
  std::vector<double> seconds;
  for (int step = 0; step < kSteps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    (void)trainer.step({input}, {}).get();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return median(seconds);
}

}  // namespace

Overhead measure_overhead() {
  const double few = step_seconds(kFew), many = step_seconds(kMany);
  const double task = std::max(0.0, (many - few) / (2.0 * (kMany - kFew)));
  return {.task = task, .step = std::max(0.0, few - 2 * kFew * task)};
}

}  // namespace stagecraft
