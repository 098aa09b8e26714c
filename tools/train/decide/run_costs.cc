#include "stagecraft/tools/train/decide/run_costs.h"

#include <thread>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/costs/costs_misfit.h"
#include "stagecraft/scheduler/measured/costs_of_run.h"
#include "stagecraft/scheduler/planners/request/costs_of_copies.h"
#include "stagecraft/tools/program/program_costs.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {
namespace {

[[noreturn]] void refuse(const PlannedWith& given, const std::string& why) {
  throw Error(Errc::UsageFile,
              fmt::format("--costs {} cannot predict this run: {}; give what --costs-out "
                          "wrote for a run of this model with as many stages and ranks, or what "
                          "stagecraft profile wrote for the model",
                          given.file,
                          why));
}

/// Costs of operators are for microbatches of one size.
bool has_sizes(const Choice& choice) {
  return !choice.schedule.stage_graph().microbatch_sizes().empty();
}

/// Returns the sums of the operators of each stage, for every stage of the schedule. Workers on
/// this machine share its processors.
Costs by_operators(const Costs& costs,
                   const WorkerOptions& workers,
                   const Choice& choice,
                   const Program& program) {
  Costs made = costs_of_copies(with_stages(costs, program), choice.layout);
  settle_halves(made.stages, choice.layout.expand(program.stage_graph()));
  if (workers.kind != WorkerKind::Joining && made.device.processors == 0) {
    made.device.threads = static_cast<int>(workers.threads);
    made.device.processors = static_cast<int>(std::thread::hardware_concurrency());
  }
  return made;
}

/// Errors: UsageFile for operators of another model, or for stages with other microbatches.
void check_model(const PlannedWith& given, const Program& program) {
  if (const auto difference = first_difference(given.costs, program)) {
    refuse(given, "it belongs to another model: " + *difference);
  }
  const int samples = samples_of(program);
  if (knows_stage_times(given.costs) && given.costs.samples != samples) {
    refuse(given,
           fmt::format("its stages took microbatches of {}, this run has {}",
                       count_text(given.costs.samples, "sample"),
                       samples));
  }
}

/// Errors: UsageFile for a schedule that needs more than operators.
void check_alone(const PlannedWith& given, const Choice& choice) {
  if (has_sizes(choice)) {
    refuse(given,
           "it has only operators, on microbatches of one size, and the schedule has stages that "
           "take several as one");
  }
}

/// Removes the operators: the simulator takes stages and links, and they would only fill the trace.
Costs without_operators(Costs costs) {
  costs.operators.clear();
  costs.operators_at.clear();
  costs.parameters.clear();
  return costs;
}

}  // namespace

std::optional<PlannedWith> given_costs(const CostFiles& files, Console& console) {
  if (!files.in) {
    return std::nullopt;
  }
  return PlannedWith{source_name(*files.in), read_costs(*files.in, console)};
}

PlannedWith costs_of_schedule(const PlannedWith& given,
                              const WorkerOptions& workers,
                              const Choice& choice,
                              const Program& program) {
  Costs costs = given.costs;
  if (!costs.operators.empty()) {
    check_model(given, program);
    if (!knows_stage_times(costs)) {
      check_alone(given, choice);
      costs = by_operators(costs, workers, choice, program);
    }
  }
  const StageGraph graph = choice.layout.expand(program.stage_graph());
  if (const auto misfit = costs_misfit(costs, choice.schedule, graph)) {
    refuse(given, *misfit);
  }
  (void)timeline_of(choice.schedule, choice.schedule.stage_graph(), costs);
  return {given.file, without_operators(std::move(costs))};
}

Costs costs_before_run(const std::optional<PlannedWith>& given,
                       const std::optional<PlannedWith>& planned,
                       const WorkerOptions& workers,
                       const Choice& choice,
                       const Program& program,
                       const Work& work) {
  Costs costs;
  if (given && !given->costs.operators.empty()) {
    costs = given->costs;
  } else {
    const WorkBatch batch = work.batch(0, choice.shape);
    costs = operator_costs(program, batch.inputs, batch.labels, static_cast<int>(workers.threads));
  }
  if (!has_sizes(choice)) {
    costs = by_operators(costs, workers, choice, program);
  }
  if (planned) {
    costs.device = planned->costs.device;
    costs.stages = planned->costs.stages;
    costs.links = planned->costs.links;
  }
  return costs;
}

}  // namespace stagecraft::tools
