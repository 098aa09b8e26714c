#include "stagecraft/scheduler/notes/sharing_misfit.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/dag/dag_source.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"

namespace stagecraft {

std::optional<std::string> sharing_misfit(const Schedule& schedule,
                                          const StageGraph& graph,
                                          Sharing sharing) {
  const Layout layout = Layout::of(schedule);
  if (layout.replicas() == 1 || sharing == Sharing::Nothing) {
    return std::nullopt;
  }
  ReplicateOptions options;
  options.share(sharing);
  try {
    (void)issue(apply(strategy_of(schedule, layout, options), bare_source(graph)));
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleInvalid) {
      throw;
    }
    return error.message();
  }
  return std::nullopt;
}

}  // namespace stagecraft
