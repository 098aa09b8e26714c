#include "stagecraft/actors/check.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/terminal.h"

namespace stagecraft {

void CheckResult::or_throw() const {
  if (ok()) {
    return;
  }
  std::string text = fmt::format("the schedule cannot run this program: {} violation{}\n{}",
                                 violations.size(),
                                 violations.size() == 1 ? "" : "s",
                                 grid);
  for (const Violation& violation : violations) {
    text += "\n" + to_string(violation);
  }
  throw Error(Errc::ScheduleInvalid, text);
}

CheckResult check(const Program& program, const Schedule& schedule) {
  CheckResult result;
  result.violations =
      validate(schedule, program.stage_graph(), {.microbatches = program.microbatches()});
  result.grid = render(schedule, result.violations);
  return result;
}

}  // namespace stagecraft
