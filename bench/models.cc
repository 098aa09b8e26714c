/// Does what is measured before a run say how long its steps take, for each of the five models?
///
/// Each model of `stagecraft train` at two ranks: its two stages are timed on a thread each, the
/// simulator makes a step's time of that, and then the steps run. All in this process, one thread
/// for each rank.
///
///   models [MODEL...]
#include "stagecraft/tools/train/models.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/stage_alone.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/thread_count.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tools/train/job.h"

namespace sc = stagecraft;

namespace {

constexpr int kRepetitions = 30, kSteps = 20;
constexpr double kGoal = 0.10;

sc::tools::TrainJob job_of(const std::string& model) {
  std::istringstream in;
  std::ostringstream out;
  sc::tools::Console console{in, out, std::cerr};
  return sc::tools::make_job(
      std::get<sc::tools::TrainOptions>(sc::tools::parse_train_options(
          {"--model", model, "--stages", "2", "--microbatches", "8", "--microbatch-size", "8"})),
      console);
}

/// Those of the first microbatch.
std::vector<at::Tensor> first_of(const sc::Batch& batch, int microbatches) {
  std::vector<at::Tensor> first;
  for (const sc::BatchTensor& one : batch) {
    first.push_back(one.tensor.narrow(0, 0, one.tensor.size(0) / microbatches));
  }
  return first;
}

/// Seconds of a step, from the times of its stages without a pipeline: all at once, one thread
/// each, as ranks run them, since processors share caches and clock.
double predicted(const sc::tools::TrainJob& job) {
  const sc::tools::WorkBatch batch = job.work->batch(0, job.choice);
  const auto inputs = first_of(batch.inputs, job.choice.microbatches),
             labels = first_of(batch.labels, job.choice.microbatches);
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

std::vector<double> measured(const sc::tools::TrainJob& job) {
  const sc::Cluster cluster = sc::Cluster::local(job.choice.layout.ranks());
  sc::Trainer trainer(cluster, job.program, job.choice.schedule, sc::AdamW{});
  const sc::tools::WorkBatch batch = job.work->batch(0, job.choice);
  (void)trainer.step(batch.inputs, batch.labels).get();
  std::vector<double> seconds;
  for (int step = 0; step < kSteps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    (void)trainer.step(batch.inputs, batch.labels).get();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return seconds;
}

void compare(const std::string& model) {
  const sc::tools::TrainJob job = job_of(model);
  const double before = predicted(job);
  std::vector<double> steps = measured(job);
  const double after = predicted(job);
  const double step = sc::bench::median(steps);
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
  at::set_num_threads(1);
  fmt::print("{}\n", sc::bench::hardware());
  std::vector<std::string> asked(argv + 1, argv + argc);
  if (asked.empty()) {
    for (const sc::tools::ModelEntry& model : sc::tools::models()) {
      asked.emplace_back(model.name);
    }
  }
  for (const std::string& model : asked) {
    compare(model);
  }
}
