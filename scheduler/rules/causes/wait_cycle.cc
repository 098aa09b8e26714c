#include "stagecraft/scheduler/rules/causes/wait_cycle.h"

#include <algorithm>

#include <fmt/format.h>

namespace stagecraft::rules {

Violation wait_cycle(const RuleInput& in, const char* rule, const std::vector<WaitStep>& steps) {
  Violation v = at(rule, in.tasks.entry(steps.front().entry), steps.front().task);
  v.cells.clear();
  std::vector<std::string> names;
  for (const WaitStep& step : steps) {
    const Entry& entry = in.tasks.entry(step.entry);
    v.cells.emplace_back(entry.row, entry.column);
    v.cycle.push_back(step.task);
    names.push_back(step.text);
  }
  v.missing = cycle_text(names);
  return v;
}

std::string cycle_text(const std::vector<std::string>& steps) {
  constexpr std::size_t kTold = 24;
  std::string text;
  for (std::size_t i = 0; i < std::min(steps.size(), kTold); ++i) {
    text += steps[i] + " -> ";
  }
  if (steps.size() > kTold) {
    text += fmt::format("... ({} in all) -> ", steps.size());
  }
  return text + steps.front();
}

}  // namespace stagecraft::rules
