#include "stagecraft/compiler/check.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/scheduler/accumulation.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/replicas.h"

namespace stagecraft {

void CheckResult::or_throw() const {
  if (ok()) {
    return;
  }
  throw Error(Errc::ScheduleInvalid, "the schedule cannot run this program\n" + grid);
}

namespace {

/// A schedule whose replicas do not fit the program breaks V32: its stages can be no copies of the
/// program's.
Violation misfit(std::string message) {
  Violation violation;
  violation.rule = "V32";
  violation.message = std::move(message);
  return violation;
}

/// What such a buffer ends with depends on the order of the stage's forwards, and two copies of the
/// stage would end with two different ones.
std::vector<std::string> names_of_written_buffers(const StageProgram& stage) {
  std::vector<std::string> names;
  for (const StageBuffer& buffer : stage.buffers) {
    if (buffer.written) {
      names.push_back(buffer.name);
    }
  }
  return names;
}

/// Running statistics would see a share of the microbatches in each copy.
void find_divided_buffers(const CompiledProgram& program,
                          const Replicas& replicas,
                          std::vector<Violation>& violations) {
  if (replicas.count() == 1) {
    return;
  }
  for (const StageProgram& stage : program.partition.stages) {
    const std::vector<std::string> names = names_of_written_buffers(stage);
    if (!names.empty()) {
      violations.push_back(
          misfit(fmt::format("stage {} (\"{}\") writes {} in its forward, and its {} replicas "
                             "would each keep other values: use a schedule of "
                             "one replica, or a normalization without running statistics",
                             stage.id.value,
                             stage.name,
                             fmt::join(names, ", "),
                             replicas.count())));
    }
  }
}

/// A stage that writes buffers in its forward leaves other values in them when its forwards run in
/// another order.
void find_reordered_buffers(const CompiledProgram& program,
                            const Schedule& schedule,
                            const Replicas& replicas,
                            CheckResult& result) {
  for (const LateForward& late : late_forwards(schedule)) {
    const StageProgram& stage = program.partition.stages[replicas.model_stage(late.stage).index()];
    const std::vector<std::string> names = names_of_written_buffers(stage);
    if (names.empty()) {
      continue;
    }
    result.notes.push_back(
        fmt::format("stage {} (\"{}\") writes {} in its forward and runs microbatch {} after "
                    "microbatch {}: what is in there in the "
                    "end, and what is computed from it, will not have the bits of one process, "
                    "which takes microbatches in order; run "
                    "the forwards of this stage in order",
                    late.stage.value,
                    stage.name,
                    fmt::join(names, ", "),
                    late.microbatch.value,
                    late.after.value));
    result.reordered_buffers.insert(result.reordered_buffers.end(), names.begin(), names.end());
  }
}

}  // namespace

CheckResult check(const Program& program, const Schedule& schedule) {
  CheckResult result;
  StageGraph graph = schedule.stage_graph();
  try {
    const Replicas replicas(schedule);
    if (program.microbatches() % replicas.count() == 0) {
      graph = replicas.expand(program.stage_graph());
      result.violations = validate(schedule, graph, {.microbatches = program.microbatches()});
      find_divided_buffers(program.compiled(), replicas, result.violations);
    } else {
      result.violations.push_back(
          misfit(fmt::format("{} microbatches do not divide over {} replicas: use a multiple of {}",
                             program.microbatches(),
                             replicas.count(),
                             replicas.count())));
    }
    if (result.ok()) {
      find_reordered_buffers(program.compiled(), schedule, replicas, result);
    }
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParameter) {
      throw;
    }
    result.violations.push_back(misfit(error.message()));
  }
  result.grid = render(schedule, result.violations, {.graph = &graph});
  return result;
}

}  // namespace stagecraft
