/// Does a profile predict a step's time? For the five models of `stagecraft train`, uncut on one
/// rank, this program compares microbatches times the sum of all operators, plus the update, with
/// measured steps.
///
/// Machines that others share change their speed within seconds by more than the goal. Profiles and
/// steps therefore take turns, and steps are compared with the mean of the profiles before and
/// after them.
///
///   profile_sum [MODEL...]
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/plans/train_models.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tools/profile/profile_report.h"

namespace stagecraft::bench::profile_sum {
namespace {

constexpr int kTurns = 7, kSteps = 9, kRepeats = 9;
constexpr double kGoal = 0.05;

/// Returns the predicted time. Units: seconds of a step.
double predicted(const tools::TrainJob& job) {
  const tools::WorkBatch batch = job.work->batch(0, job.choice);
  const Profile measured =
      profile(job.program, batch.inputs, batch.labels, {.repeats = kRepeats, .cache = ""});
  const auto sums = tools::sums_of(measured.costs.operators, measured.costs.samples);
  double update = 0;
  for (const OperatorCost& cost : measured.costs.operators) {
    update += cost.update;
  }
  return job.choice.microbatches * (sums.forward + sums.backward()) + update;
}

void compare(const std::string& model) {
  const tools::TrainJob job = train_job(model, /*ranks=*/1);
  std::vector<double> predictions{predicted(job)}, steps, ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double before = predictions.back();
    steps.push_back(median(step_seconds(job, kSteps)));
    predictions.push_back(predicted(job));
    ratios.push_back(steps.back() / ((before + predictions.back()) / 2));
  }
  const auto text = [](const std::vector<double>& values, double unit, int digits) {
    const Quartiles q = quartiles_of(values);
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})",
                       q.median * unit,
                       digits,
                       q.first * unit,
                       digits,
                       q.third * unit,
                       digits);
  };
  fmt::print("{:6}  predicted {} ms  measured {} ms  ratio {}  {} {:.0f} %; load {:.1f}\n",
             model,
             text(predictions, 1e3, 1),
             text(steps, 1e3, 1),
             text(ratios, 1, 3),
             std::abs(median(ratios) - 1.0) <= kGoal ? "within" : "not within",
             kGoal * 100,
             load());
  std::fflush(stdout);  // rows take minutes
}

}  // namespace

int run(int argc, char** argv) {
  each_train_model(argc, argv, compare);
  return 0;
}

}  // namespace stagecraft::bench::profile_sum
