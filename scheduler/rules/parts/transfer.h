/// Transfer is one value that crosses from one row to another.
#pragma once

#include <vector>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

struct Transfer {
  Task made;
  Task needed_by;
  int from = 0;  ///< entries
  int to = 0;
};

/// Returns whether the caller's file lists transfers. If not, they follow from the tasks.
[[nodiscard]] bool lists_transfers(const ValidateOptions& options);

/// Returns the values that the tasks of one row need from another, by the entry that needs them.
[[nodiscard]] std::vector<Transfer> transfers_of(const RuleInput& in);

}  // namespace stagecraft::rules
