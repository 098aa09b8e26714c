#include "stagecraft/actors/trainer/execution.h"

#include <utility>

#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/shapes/replicate.h"
#include "stagecraft/compiler/shapes/resize.h"

namespace stagecraft {

Execution make_execution(const Program& program, const Schedule& schedule) {
  const CheckResult checked = check(program, schedule);
  checked.or_throw();
  const Layout& layout = *checked.layout;
  const Program laid_out =
      replicate(resize(program, schedule.stage_graph().microbatch_sizes()), layout);
  auto plan =
      std::make_shared<const Plan>(lower_schedule(laid_out, schedule, layout, /*training=*/true));
  return {.program = program,
          .laid_out = laid_out,
          .schedule = schedule,
          .layout = layout,
          .plan = std::move(plan),
          .reordered_buffers = checked.reordered_buffers,
          .notes = checked.notes};
}

}  // namespace stagecraft
