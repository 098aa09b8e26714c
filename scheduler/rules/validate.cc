#include "stagecraft/scheduler/rules/validate.h"

#include <algorithm>

#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/rules/causes/order_exchange.h"
#include "stagecraft/scheduler/rules/causes/same_cause.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"
#include "stagecraft/scheduler/rules/registry.h"

namespace stagecraft {
namespace {

/// Returns all violations with those of each cell apart, including the repairs of deadlocks.
std::vector<Violation> judge(const Schedule& schedule,
                             const StageGraph& graph,
                             const ValidateOptions& options) {
  const int microbatches = options.microbatches.value_or(schedule.microbatches());
  const TaskGraph tasks(schedule.rows(), graph, microbatches);
  const Placement placement = Placement::of(schedule, graph.size());
  const rules::RuleInput in{schedule, graph, options, tasks, placement};
  std::vector<Violation> out;
  for (const rules::RuleInfo& rule : rules::rule_table()) {
    rule.check(in, out);
    if (tasks.rows() == 0) {
      break;  // an empty schedule breaks the first rules only
    }
  }
  std::ranges::stable_sort(out, {}, &Violation::rule);
  return out;
}

}  // namespace

std::vector<Violation> validate(const Schedule& schedule,
                                const StageGraph& graph,
                                const ValidateOptions& options) {
  std::vector<Violation> found = judge(schedule, graph, options);
  const auto again = [&](const Schedule& s) { return judge(s, graph, options); };
  const auto first = std::ranges::find_if(found, rules::about_order);
  if (first != found.end()) {
    first->repair = rules::find_order_exchange(schedule, graph, options, found, again);
    if (first->repair) {
      first->message += "; exchange " + to_string(*first->repair, schedule);
    }
  }
  rules::tell_together(found);
  return found;
}

}  // namespace stagecraft
