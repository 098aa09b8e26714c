/// Judged is a schedule as the rules see it: with its graph, its tasks and its placement.
#pragma once

#include <string_view>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::test {

struct Judged {
  explicit Judged(std::string_view text)
      : schedule(Schedule::parse(text)),
        graph(schedule.stage_graph()),
        tasks(schedule.rows(), graph, schedule.microbatches()),
        placement(Placement::of(schedule, graph.size())) {}
  Judged(const Judged&) = delete;  // tasks and input view the other members
  Judged& operator=(const Judged&) = delete;

  const Schedule schedule;
  const StageGraph graph;
  const ValidateOptions options{};
  const TaskGraph tasks;
  const Placement placement;
  const rules::RuleInput input{schedule, graph, options, tasks, placement};
};

}  // namespace stagecraft::test
