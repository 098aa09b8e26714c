/// wait_cycle makes the violation for entries that wait for each other in a cycle, for V29 and V35.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

/// WaitStep is a step of the cycle. It waits for the step before it; the first waits for the last.
struct WaitStep {
  int entry = 0;
  Task task;
  std::string text;  ///< its name in the cycle
};

/// Returns a violation at the first step that holds the whole cycle: its tasks, its cells, and
/// `missing` as "0B0 -> 0F1 -> 0B0". It has no message yet.
[[nodiscard]] Violation wait_cycle(const RuleInput& in,
                                   const char* rule,
                                   const std::vector<WaitStep>& steps);

/// Returns "0B0 -> 0F1 -> 0B0"; for a long cycle its beginning and its length.
[[nodiscard]] std::string cycle_text(const std::vector<std::string>& steps);

}  // namespace stagecraft::rules
