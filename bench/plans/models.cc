/// Do measurements before a run predict how long its steps take, for each of the five models?
///
/// For each model of `stagecraft train` at two ranks, the two stages are timed on a thread each,
/// the simulator computes a step's time from that, and then the steps run. Everything is in this
/// process, with one thread per rank.
///
///   models [MODEL...]
#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/plans/train_models.h"
#include "stagecraft/bench/step/stage_alone.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::models {
namespace {

constexpr int kRepetitions = 30, kSteps = 20;
constexpr double kGoal = 0.10;

/// Returns the tensors of the first microbatch.
std::vector<at::Tensor> first_of(const Batch& batch, int microbatches) {
  std::vector<at::Tensor> first;
  for (const BatchTensor& one : batch) {
    first.push_back(one.tensor.narrow(0, 0, one.tensor.size(0) / microbatches));
  }
  return first;
}

/// Returns the predicted seconds of a step, from the times of its stages without a pipeline. All
/// stages run at once, one thread each, like ranks, since processors share caches and clock.
double predicted(const tools::TrainJob& job) {
  const tools::WorkBatch batch = job.work->batch(0, job.choice);
  const auto inputs = first_of(batch.inputs, job.choice.microbatches),
             labels = first_of(batch.labels, job.choice.microbatches);
  const std::vector<StageProgram>& stages = job.program.compiled().partition.stages;
  std::vector<StageTimes> all(stages.size());
  std::vector<std::thread> ranks;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    ranks.emplace_back([&, s] {
      set_own_thread_count(1);
      all[s] = time_stage(job.program, stages[s], inputs, labels, kRepetitions);
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  Costs costs;
  double update = 0.0;
  for (const StageTimes& times : all) {
    costs.stages.each.push_back({.forward = times.forward, .backward = times.backward});
    update = std::max(update, times.update);
  }
  return simulate(job.choice.schedule, job.program.stage_graph(), costs).makespan + update;
}

void compare(const std::string& model) {
  const tools::TrainJob job = train_job(model, /*ranks=*/2);
  const double before = predicted(job);
  const std::vector<double> steps = step_seconds(job, kSteps);
  const double after = predicted(job);
  const double step = median(steps);
  fmt::print(
      "{:6}  predicted {:7.1f} ms  measured {:7.1f} ms (best {:7.1f})  ratio {:.3f}  "
      "{} {:.0f} %; predicted anew afterwards: {:.1f} ms\n",
      model,
      before * 1e3,
      step * 1e3,
      *std::ranges::min_element(steps) * 1e3,
      step / before,
      std::abs(step / before - 1.0) <= kGoal ? "within" : "not within",
      kGoal * 100,
      after * 1e3);
}

}  // namespace

int run(int argc, char** argv) {
  each_train_model(argc, argv, compare);
  return 0;
}

}  // namespace stagecraft::bench::models
