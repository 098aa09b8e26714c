/// wait_cycle: the violation of those that wait for each other in a cycle, for V29 and V35.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/rules.h"

namespace stagecraft::rules {

/// One that waits for the step before it; the first waits for the last.
struct WaitStep {
  int entry = 0;
  Task task;
  std::string text;  ///< how the cycle names it
};

/// Returns a violation at the first step that has the whole cycle: its tasks, its cells, and as
/// `missing` "0B0 -> 0F1 -> 0B0". The message is still empty.
[[nodiscard]] Violation wait_cycle(const Input& in,
                                   const char* rule,
                                   const std::vector<WaitStep>& steps);

/// Returns "0B0 -> 0F1 -> 0B0"; of a long one its beginning and its length.
[[nodiscard]] std::string cycle_text(const std::vector<std::string>& steps);

}  // namespace stagecraft::rules
