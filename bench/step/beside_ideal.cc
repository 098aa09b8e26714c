#include "stagecraft/bench/step/beside_ideal.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::bench {
namespace {

constexpr int kRepetitions = 12, kSteps = 10;
constexpr double kGoal = 1.05;  // multiple of the ideal

double ideal_step(const MeasuredModel& model,
                  const Program& program,
                  const Schedule& schedule,
                  std::vector<StageTimes>& each) {
  Costs costs;
  double update = 0.0;
  each.clear();
  for (const StageProgram& stage : program.compiled().partition.stages) {
    const StageTimes times =
        time_stage(program, stage, model.one_input, model.one_label, kRepetitions);
    costs.stages.each.push_back({.forward = times.forward, .backward = times.backward});
    update = std::max(update, times.update);
    each.push_back(times);
  }
  return simulate(schedule, program.stage_graph(), costs).makespan + update;
}

}  // namespace

BesideIdeal beside_ideal(const Cluster& cluster, const MeasuredModel& model) {
  const Program program = model.compile();
  const Schedule schedule = one_f_one_b(program.stage_graph(), model.microbatches);
  Trainer trainer(cluster, program, schedule, AdamW{});
  const auto step = [&] { (void)trainer.step(model.inputs, model.labels).get(); };
  BesideIdeal result;
  std::vector<StageTimes> after;
  result.ideal_before = ideal_step(model, program, schedule, result.stages);
  step();
  std::vector<double> steps;
  for (int i = 0; i < kSteps; ++i) {
    steps.push_back(seconds_of(step));
  }
  result.ideal_after = ideal_step(model, program, schedule, after);
  result.step = median(steps);
  result.best_step = *std::ranges::min_element(steps);
  result.tokens_per_second = static_cast<double>(model.inputs.front().tensor.numel()) / result.step;
  return result;
}

std::string text_of(const BesideIdeal& result) {
  std::string text;
  for (std::size_t s = 0; s < result.stages.size(); ++s) {
    text +=
        fmt::format("  stage {} alone: forward {:.1f} ms, backward {:.1f} ms, update {:.1f} ms\n",
                    s,
                    result.stages[s].forward * 1e3,
                    result.stages[s].backward * 1e3,
                    result.stages[s].update * 1e3);
  }
  return text +
         fmt::format(
             "  step {:.0f} ms (best {:.0f}), ideal {:.0f} ms (before {:.0f}, after {:.0f}); ratio "
             "{:.3f}, best {:.3f} (goal {}); {:.0f} tokens/s\n",
             result.step * 1e3,
             result.best_step * 1e3,
             result.ideal() * 1e3,
             result.ideal_before * 1e3,
             result.ideal_after * 1e3,
             result.step / result.ideal(),
             result.best_step / result.ideal(),
             kGoal,
             result.tokens_per_second);
}

nlohmann::json json_of(const BesideIdeal& result) {
  nlohmann::json stages = nlohmann::json::array();
  for (const StageTimes& times : result.stages) {
    stages.push_back(
        {{"forward", times.forward}, {"backward", times.backward}, {"update", times.update}});
  }
  return {{"step", result.step},
          {"best_step", result.best_step},
          {"ideal_before", result.ideal_before},
          {"ideal_after", result.ideal_after},
          {"tokens_per_second", result.tokens_per_second},
          {"goal", kGoal},
          {"stages", stages}};
}

}  // namespace stagecraft::bench
