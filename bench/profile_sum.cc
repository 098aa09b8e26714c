/// Does a profile say what a step takes? The five models of `stagecraft train`, uncut on one rank:
/// microbatches times the sum of all operators, and the update, against measured steps.
///
///   profile_sum [MODEL...]
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/train_models.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tools/profile/profile_report.h"

namespace sc = stagecraft;

namespace {

constexpr int kSteps = 15, kRepeats = 15;
constexpr double kGoal = 0.05;

struct Prediction {
  double step = 0;
  double noise = 0;
};

Prediction predicted(const sc::tools::TrainJob& job) {
  const sc::tools::WorkBatch batch = job.work->batch(0, job.choice);
  const sc::Profile profile =
      sc::profile(job.program, batch.inputs, batch.labels, {.repeats = kRepeats, .cache = ""});
  const auto sums = sc::tools::sums_of(profile.costs.operators, profile.costs.samples);
  double update = 0;
  for (const sc::OperatorCost& cost : profile.costs.operators) {
    update += cost.update;
  }
  return {.step = job.choice.microbatches * (sums.forward + sums.backward()) + update,
          .noise = profile.costs.device.noise};
}

void compare(const std::string& model) {
  const sc::tools::TrainJob job = sc::bench::train_job(model, /*ranks=*/1);
  const Prediction before = predicted(job);
  const sc::Quartiles step = sc::quartiles_of(sc::bench::step_seconds(job, kSteps));
  const double again = predicted(job).step;
  fmt::print(
      "{:6}  predicted {:7.1f} ms (noise {:4.1f} %)  measured {:7.1f} ms (quartiles {:.1f} to "
      "{:.1f})  ratio {:.3f}  {} {:.0f} %; predicted anew afterwards: {:.1f} ms; load {:.1f}\n",
      model,
      before.step * 1e3,
      before.noise * 100,
      step.median * 1e3,
      step.first * 1e3,
      step.third * 1e3,
      step.median / before.step,
      std::abs(step.median / before.step - 1.0) <= kGoal ? "within" : "not within",
      kGoal * 100,
      again * 1e3,
      sc::bench::load());
}

}  // namespace

int main(int argc, char** argv) {
  sc::bench::each_train_model(argc, argv, compare);
}
