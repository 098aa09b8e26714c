/// Does a profile say what a step takes? The five models of `stagecraft train`, uncut on one rank:
/// microbatches times the sum of all operators, and the update, against measured steps.
///
///   profile_sum [MODEL...]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "stagecraft/bench/hardware.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tools/profile/profile_report.h"
#include "stagecraft/tools/train/job.h"
#include "stagecraft/tools/train/models.h"

namespace sc = stagecraft;

namespace {

constexpr int kMicrobatches = 8, kSamples = 8, kSteps = 15, kRepeats = 15;
constexpr double kGoal = 0.05;

sc::tools::TrainJob job_of(const std::string& model) {
  std::istringstream in;
  std::ostringstream out;
  sc::tools::Console console{in, out, std::cerr};
  return sc::tools::make_job(std::get<sc::tools::TrainOptions>(
                                 sc::tools::parse_train_options({"--model",
                                                                 model,
                                                                 "--ranks",
                                                                 "1",
                                                                 "--stages",
                                                                 "1",
                                                                 "--microbatches",
                                                                 std::to_string(kMicrobatches),
                                                                 "--microbatch-size",
                                                                 std::to_string(kSamples)})),
                             console);
}

struct Prediction {
  double step = 0;
  double noise = 0;
};

Prediction predicted(const sc::tools::TrainJob& job) {
  const sc::tools::WorkBatch batch = job.work->batch(0, job.choice);
  const sc::Profile profile =
      sc::profile(job.program, batch.inputs, batch.labels, {.repeats = kRepeats, .cache = ""});
  const auto sums = sc::tools::sums_of(profile.costs.operators, kSamples);
  double update = 0;
  for (const sc::OperatorCost& cost : profile.costs.operators) {
    update += cost.update;
  }
  return {.step = kMicrobatches * (sums.forward + sums.backward()) + update,
          .noise = profile.costs.device.noise};
}

std::vector<double> measured(const sc::tools::TrainJob& job) {
  const sc::Cluster cluster = sc::Cluster::local(1);
  sc::Trainer trainer(cluster, job.program, job.choice.schedule, sc::AdamW{});
  const sc::tools::WorkBatch batch = job.work->batch(0, job.choice);
  for (int warm_up = 0; warm_up < 2; ++warm_up) {
    (void)trainer.step(batch.inputs, batch.labels).get();
  }
  std::vector<double> seconds;
  for (int step = 0; step < kSteps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    (void)trainer.step(batch.inputs, batch.labels).get();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  return seconds;
}

void compare(const std::string& model) {
  const sc::tools::TrainJob job = job_of(model);
  const Prediction before = predicted(job);
  const std::vector<double> steps = measured(job);
  const double again = predicted(job).step;
  const double step = sc::bench::median(steps);
  fmt::print(
      "{:6}  predicted {:7.1f} ms (noise {:4.1f} %)  measured {:7.1f} ms (quartiles {:.1f} to "
      "{:.1f})  ratio {:.3f}  {} {:.0f} %; predicted anew afterwards: {:.1f} ms; load {:.1f}\n",
      model,
      before.step * 1e3,
      before.noise * 100,
      step * 1e3,
      steps[steps.size() / 4] * 1e3,
      steps[steps.size() * 3 / 4] * 1e3,
      step / before.step,
      std::abs(step / before.step - 1.0) <= kGoal ? "within" : "not within",
      kGoal * 100,
      again * 1e3,
      sc::bench::load());
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
