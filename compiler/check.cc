#include "stagecraft/compiler/check.h"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/scheduler/accumulation.h"
#include "stagecraft/scheduler/render/terminal.h"

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

/// What such a buffer ends with depends on which forwards of the stage wrote it, and in what order.
std::vector<std::string> names_of_written_buffers(const StageProgram& stage) {
  std::vector<std::string> names;
  for (const StageBuffer& buffer : stage.buffers) {
    if (buffer.written) {
      names.push_back(buffer.name);
    }
  }
  return names;
}

/// Running statistics see a share of the microbatches in each copy, and those of the first count.
void find_divided_buffers(const CompiledProgram& program,
                          const Layout& layout,
                          CheckResult& result) {
  if (layout.replicas() == 1) {
    return;
  }
  for (const StageProgram& stage : program.partition.stages) {
    const std::vector<std::string> names = names_of_written_buffers(stage);
    if (!names.empty()) {
      result.notes.push_back(
          fmt::format("stage {} (\"{}\") writes {} in its forward, and each of its {} replicas "
                      "sees its own share of the microbatches: behind every step all go on with "
                      "what the first replica has, which one process would not have",
                      stage.id.value,
                      stage.name,
                      fmt::join(names, ", "),
                      layout.replicas()));
      result.reordered_buffers.insert(result.reordered_buffers.end(), names.begin(), names.end());
    }
  }
}

/// A stage that writes buffers in its forward leaves other values in them when its forwards run in
/// another order.
void find_reordered_buffers(const CompiledProgram& program,
                            const Schedule& schedule,
                            const Layout& layout,
                            CheckResult& result) {
  for (const LateForward& late : late_forwards(schedule)) {
    const StageProgram& stage = program.partition.stages[layout.model_stage(late.stage).index()];
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
    const Layout& layout = result.layout.emplace(Layout::of(schedule));
    if (program.microbatches() % layout.replicas() == 0) {
      graph = layout.expand(program.stage_graph());
      result.violations = validate(schedule, graph, {.microbatches = program.microbatches()});
      if (result.ok() &&
          layout.stages() < graph.size()) {  // the tasks are right, the header is not
        result.violations.push_back(
            misfit(fmt::format("the schedule declares {} stages, the program has {}: correct its "
                               "header, or leave the number out",
                               layout.stages(),
                               graph.size())));
      }
    } else {
      result.violations.push_back(
          misfit(fmt::format("{} microbatches do not divide over {} replicas: use a multiple of {}",
                             program.microbatches(),
                             layout.replicas(),
                             layout.replicas())));
    }
    if (result.ok()) {
      find_divided_buffers(program.compiled(), layout, result);
      find_reordered_buffers(program.compiled(), schedule, layout, result);
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
