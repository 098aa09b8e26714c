#include "stagecraft/actors/trainer/execution.h"

#include <utility>

#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"

namespace stagecraft {

Execution make_execution(const Program& program,
                         const Schedule& schedule,
                         const ReplicateOptions& copies) {
  const CheckResult checked = check(program, schedule);
  checked.or_throw();
  const Layout& layout = *checked.layout;
  const Program sized = resize(program, schedule.stage_graph().microbatch_sizes());
  Strategy strategy = strategy_of(schedule, layout, copies);
  auto plan = std::make_shared<const Plan>(lower(sized, strategy, layout, /*training=*/true));
  return {.program = program,
          .sized = sized,
          .schedule = schedule,
          .layout = layout,
          .strategy = std::move(strategy),
          .plan = std::move(plan),
          .reordered_buffers = checked.reordered_buffers,
          .notes = checked.notes};
}

}  // namespace stagecraft
