#include "stagecraft/scheduler/planners/registry.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/scheduler/planners/balance/balance.h"
#include "stagecraft/scheduler/planners/capslog/capslog.h"
#include "stagecraft/scheduler/planners/graphpipe/graphpipe.h"
#include "stagecraft/scheduler/planners/pfeife/pfeife.h"

namespace stagecraft {

std::span<const PlannerInfo> planners() {
  static const std::vector<PlannerInfo> kTable{
      {"balance",
       "stages of nearly the same time, and every builder",
       balance_refuses,
       balance_candidates},
      {"pfeife", "split points and looped schedules together", pfeife_refuses, pfeife_candidates},
      {"graphpipe",
       "keeps parallel branches of the model parallel",
       graphpipe_refuses,
       graphpipe_candidates},
      {"capslog",
       "the fullest device holds as little as it can",
       capslog_refuses,
       capslog_candidates},
  };
  return kTable;
}

const PlannerInfo& find_planner(std::string_view name) {
  const auto all = planners();
  const auto found = std::ranges::find(all, name, &PlannerInfo::name);
  if (found == all.end()) {
    std::vector<std::string> names{"auto"};
    std::ranges::transform(
        all, std::back_inserter(names), [](const PlannerInfo& p) { return std::string(p.name); });
    throw Error(Errc::UsageArgument,
                fmt::format("there is no planner '{}'; {}there are {}",
                            name,
                            did_you_mean(name, names),
                            fmt::join(names, ", ")));
  }
  return *found;
}

}  // namespace stagecraft
