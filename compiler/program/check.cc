#include "stagecraft/compiler/program/check.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/notes/accumulation.h"
#include "stagecraft/scheduler/render/terminal.h"
#include "stagecraft/scheduler/simulate/driver_row.h"

namespace stagecraft {

void CheckResult::or_throw() const {
  if (ok()) {
    return;
  }
  throw Error(Errc::ScheduleInvalid, "the schedule cannot run this program\n" + grid);
}

namespace {

/// Returns a violation of V32. A schedule whose replicas do not fit the program breaks this rule,
/// because its stages cannot be copies of the program's.
Violation misfit(std::string message) {
  Violation violation;
  violation.rule = "V32";
  violation.message = std::move(message);
  return violation;
}

/// Returns the names of buffers that forwards write. Their final values depend on which forwards of
/// the stage wrote them, and in what order.
std::vector<std::string> names_of_written_buffers(const StageProgram& stage) {
  std::vector<std::string> names;
  for (const StageBuffer& buffer : stage.buffers) {
    if (buffer.written) {
      names.push_back(buffer.name);
    }
  }
  return names;
}

/// In each copy running statistics see only a share of the microbatches; those of the first copy
/// are kept.
void find_divided_buffers(const CompiledProgram& program,
                          const Layout& layout,
                          CheckResult& result) {
  for (const StageProgram& stage : program.partition.stages) {
    const std::vector<std::string> names = names_of_written_buffers(stage);
    const auto ranks = layout.ranks_of(layout.stage(stage.id, 0)).size();
    const std::size_t copies = ranks * static_cast<std::size_t>(layout.replicas());
    if (!names.empty() && copies > 1) {
      result.notes.push_back(
          fmt::format("stage {} (\"{}\") writes {} in its forward, and each of its {} copies "
                      "sees its own share of the microbatches: after every step all copies "
                      "continue with the values of the first, which differ from those of one "
                      "process",
                      stage.id.value,
                      stage.name,
                      fmt::join(names, ", "),
                      copies));
      result.reordered_buffers.insert(result.reordered_buffers.end(), names.begin(), names.end());
    }
  }
}

/// A stage that writes buffers in its forward leaves other values in them if its forwards run in
/// another order.
void find_reordered_buffers(const CompiledProgram& program,
                            const Schedule& schedule,
                            const Layout& layout,
                            CheckResult& result) {
  for (const StageProgram& stage : program.partition.stages) {
    const std::vector<std::string> names = names_of_written_buffers(stage);
    const int units = layout.units_per_rank(layout.stage(stage.id, 0));
    if (!names.empty() && units > 1) {
      result.notes.push_back(fmt::format(
          "stage {} (\"{}\") writes {} in its forward and runs the microbatches of {} units of "
          "samples in turns: these buffers, and all values computed from them, will not have the "
          "bits of one process; give the stage as many ranks as the others",
          stage.id.value,
          stage.name,
          fmt::join(names, ", "),
          units));
      result.reordered_buffers.insert(result.reordered_buffers.end(), names.begin(), names.end());
    }
  }
  for (const LateForward& late : late_forwards(schedule)) {
    const StageProgram& stage = program.partition.stages[layout.model_stage(late.stage).index()];
    const std::vector<std::string> names = names_of_written_buffers(stage);
    if (names.empty()) {
      continue;
    }
    result.notes.push_back(
        fmt::format("stage {} (\"{}\") writes {} in its forward and runs microbatch {} after "
                    "microbatch {}: these buffers, and all values computed from them, will not "
                    "have the bits of one process, which takes microbatches in order; run the "
                    "forwards of this stage in order",
                    late.stage.value,
                    stage.name,
                    fmt::join(names, ", "),
                    late.microbatch.value,
                    late.after.value));
    result.reordered_buffers.insert(result.reordered_buffers.end(), names.begin(), names.end());
  }
}

/// Finds the faults that keep stages of different microbatch sizes from running; validate() finds
/// the others. Requires: the schedule has sizes, and is valid.
void check_sizes(const Program& program, const StageGraph& graph, CheckResult& result) {
  const Layout& layout = *result.layout;
  if (layout.replicas() > 1 || !layout.is_single()) {
    result.violations.push_back(
        misfit("stages take microbatches of different sizes in a schedule without copies only: "
               "leave its @replicas, its @place or its @sizes out"));
    return;
  }
  if (program.shape_captures() == nullptr) {
    result.violations.push_back(
        misfit("stages take microbatches of other sizes only in a program that was compiled from "
               "a module, which is captured for each size: leave the schedule's @sizes out"));
  }
  for (const auto& [from, to] : graph.edges()) {
    const StageId producer(from);
    const StageId consumer(to);
    if (graph.microbatch_size(producer) != graph.microbatch_size(consumer) &&
        std::ranges::equal(layout.ranks_of(producer), layout.ranks_of(consumer))) {
      result.violations.push_back(misfit(
          fmt::format("stage {} takes {} as one, stage {}, which reads from it, takes "
                      "{}, and both are on one row: give each a row of its own, or give both one "
                      "size",
                      from,
                      count_text(graph.microbatch_size(producer), "microbatch"),
                      to,
                      graph.microbatch_size(consumer))));
    }
  }
}

/// Checks the schedule against the program's stages as `model` has them.
CheckResult check_on(const Program& program, const Schedule& schedule, const StageGraph& model) {
  CheckResult result;
  StageGraph graph = schedule.stage_graph();
  const std::vector<int> sizes = graph.microbatch_sizes();
  try {
    const Layout& layout = result.layout.emplace(Layout::of(schedule));
    const int copies = layout.units() * layout.replicas();
    if (program.microbatches() % copies == 0) {
      graph = layout.expand(model);
      if (!sizes.empty()) {
        graph.set_microbatch_sizes(sizes);
      }
      result.violations =
          validate(schedule, graph, {.microbatches = program.microbatches() / layout.units()});
      if (result.ok() &&
          layout.stages() < graph.size()) {  // the tasks are right, but the header is not
        result.violations.push_back(
            misfit(fmt::format("the schedule declares {}, the program has {}: correct its "
                               "header, or leave the number out",
                               count_text(layout.stages(), "stage"),
                               graph.size())));
      }
    } else {
      result.violations.push_back(
          misfit(fmt::format("{} cannot be divided over {} copies: use a multiple of {}",
                             count_text(program.microbatches(), "microbatch"),
                             copies,
                             copies)));
    }
    if (result.ok() && !sizes.empty()) {
      check_sizes(program, graph, result);
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

/// Checks the schedule with the driver's row. Requires: without it the schedule is valid.
CheckResult check_parts(const Program& program, const Schedule& schedule, CheckResult whole) {
  const CompiledProgram& compiled = program.compiled();
  const auto refused = [&](const std::string& why) {
    whole.violations.push_back(misfit(why));
    whole.grid = render(schedule, whole.violations);
    return whole;
  };
  if (!schedule.stage_graph().microbatch_sizes().empty()) {
    return refused(
        "stages take microbatches of different sizes in a program without code on the driver "
        "only: leave the schedule's @sizes out");
  }
  try {
    const Schedule with_row =
        with_driver_row(schedule, *whole.layout, compiled.stage_graph, compiled.assignment.parts);
    CheckResult result = check_on(program, with_row, compiled.stage_graph);
    if (result.ok()) {
      result.schedule = with_row;
    }
    return result;
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParameter && error.code() != Errc::ScheduleInvalid) {
      throw;
    }
    return refused(error.message());
  }
}

}  // namespace

CheckResult check(const Program& program, const Schedule& schedule) {
  CheckResult result = check_on(program, schedule, program.stage_graph());
  if (result.ok()) {
    result.schedule = schedule;
  }
  if (result.ok() && !program.compiled().assignment.parts.empty()) {
    result = check_parts(program, schedule, std::move(result));
  }
  if (result.ok()) {
    find_divided_buffers(program.compiled(), *result.layout, result);
    find_reordered_buffers(program.compiled(), *result.schedule, *result.layout, result);
  }
  return result;
}

}  // namespace stagecraft
