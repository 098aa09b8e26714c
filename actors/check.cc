#include "stagecraft/actors/check.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/terminal.h"

namespace stagecraft {

void CheckResult::or_throw() const {
  if (ok()) {
    return;
  }
  throw Error(Errc::ScheduleInvalid, "the schedule cannot run this program\n" + grid);
}

CheckResult check(const Program& program, const Schedule& schedule) {
  CheckResult result;
  result.violations =
      validate(schedule, program.stage_graph(), {.microbatches = program.microbatches()});
  result.grid = render(schedule, result.violations);
  return result;
}

}  // namespace stagecraft
