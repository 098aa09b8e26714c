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
#include "stagecraft/bench/stage_alone.h"
#include "stagecraft/bench/train_models.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;

namespace {

constexpr int kRepetitions = 30, kSteps = 20;
constexpr double kGoal = 0.10;

/// Returns the tensors of the first microbatch.
std::vector<at::Tensor> first_of(const sc::Batch& batch, int microbatches) {
  std::vector<at::Tensor> first;
  for (const sc::BatchTensor& one : batch) {
    first.push_back(one.tensor.narrow(0, 0, one.tensor.size(0) / microbatches));
  }
  return first;
}

/// Returns the predicted seconds of a step, from the times of its stages without a pipeline. All
/// stages run at once, one thread each, like ranks, since processors share caches and clock.
double predicted(const sc::tools::TrainJob& job) {
  const sc::tools::WorkBatch batch = job.work->batch(0, job.choice.shape);
  const auto inputs = first_of(batch.inputs, job.choice.shape.microbatches),
             labels = first_of(batch.labels, job.choice.shape.microbatches);
  const std::vector<sc::StageProgram>& stages = job.program.compiled().partition.stages;
  std::vector<sc::bench::StageTimes> all(stages.size());
  std::vector<std::thread> ranks;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    ranks.emplace_back([&, s] {
      sc::set_own_thread_count(1);
      all[s] = sc::bench::time_stage(job.program, stages[s], inputs, labels, kRepetitions);
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  sc::Costs costs;
  double update = 0.0;
  for (const sc::bench::StageTimes& times : all) {
    costs.stages.each.push_back({.forward = times.forward, .backward = times.backward});
    update = std::max(update, times.update);
  }
  return sc::simulate(job.choice.schedule, job.program.stage_graph(), costs).makespan + update;
}

void compare(const std::string& model) {
  const sc::tools::TrainJob job = sc::bench::train_job(model, /*ranks=*/2);
  const double before = predicted(job);
  const std::vector<double> steps = sc::bench::step_seconds(job, kSteps);
  const double after = predicted(job);
  const double step = sc::median(steps);
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

int main(int argc, char** argv) {
  sc::bench::each_train_model(argc, argv, compare);
}
