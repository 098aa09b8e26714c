#include "stagecraft/actors/check.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/replicas.h"
#include "stagecraft/scheduler/render/terminal.h"

namespace stagecraft {

void CheckResult::or_throw() const {
  if (ok()) {
    return;
  }
  throw Error(Errc::ScheduleInvalid, "the schedule cannot run this program\n" + grid);
}

namespace {

/// A schedule whose replicas do not fit the program breaks V32: its stages are no copies of the program's.
Violation misfit(std::string message) {
  Violation violation;
  violation.rule = "V32";
  violation.message = std::move(message);
  return violation;
}

std::vector<Violation> find_violations(const Program& program, const Schedule& schedule) {
  try {
    const Replicas replicas(schedule);
    if (program.microbatches() % replicas.count() != 0) {
      return {misfit(fmt::format("{} microbatches do not divide over {} replicas: use a multiple of {}",
                                 program.microbatches(),
                                 replicas.count(),
                                 replicas.count()))};
    }
    return validate(schedule,
                    replicas.expand(program.stage_graph()),
                    {.microbatches = program.microbatches()});
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParameter) {
      throw;
    }
    return {misfit(error.message())};
  }
}

}  // namespace

CheckResult check(const Program& program, const Schedule& schedule) {
  CheckResult result;
  result.violations = find_violations(program, schedule);
  result.grid = render(schedule, result.violations);
  return result;
}

}  // namespace stagecraft
