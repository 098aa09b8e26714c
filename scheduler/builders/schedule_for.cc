#include "stagecraft/scheduler/builders/schedule_for.h"

#include <optional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft {

Schedule schedule_for(std::string_view name, const StageGraph& stages, int microbatches) {
  const BuilderInfo& builder = find_builder(name);
  if (builder.takes_graph) {
    return build_schedule(name, {.microbatches = microbatches, .graph = stages});
  }
  const int wanted = stages.size();
  std::set<int> made;
  std::optional<Error> refused;
  for (int devices = wanted; devices >= 1; --devices) {
    if (wanted % devices != 0) {
      continue;  // all devices have the same number of stages
    }
    try {
      Schedule schedule = build_schedule(name, {.devices = devices, .microbatches = microbatches});
      const int makes = Layout::of(schedule).model_stages();
      if (makes == wanted) {
        return schedule;
      }
      made.insert(makes);
    } catch (const Error& error) {
      refused = refused ? refused : error;
    }
  }
  if (refused && made.empty()) {
    throw Error(*refused);
  }
  throw Error(Errc::UsageArgument,
              fmt::format("{} expects a model of {} stages, found one of {}; cut the model into as "
                          "many, or choose another schedule, such as 1f1b",
                          name,
                          fmt::join(made, " or "),
                          wanted));
}

}  // namespace stagecraft
