/// match_transfers finds the send and the receive of a file that move each value.
///
/// It is a part of check_listed_transfers(), which then checks their order.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/parts/rule_input.h"
#include "stagecraft/scheduler/rules/parts/transfer.h"

namespace stagecraft::rules {

struct ListedTransfer {
  static constexpr int kNone = -1;

  Transfer value;
  int send = kNone;  ///< number of an action of the file
  int receive = kNone;
  bool in_time = false;  ///< both exist, the send is after its maker, the receive before its user
};

/// Returns every value that crosses rows, with its actions. Reports actions that do not fit: V02,
/// V04, V05, V07, V08, and as V31 those that are missing, have no other end, or come too early or
/// too late.
[[nodiscard]] std::vector<ListedTransfer> match_transfers(const RuleInput& in, Violations& out);

/// Returns the entry before an action, or TaskGraph::kMissing. Requires: its row exists.
[[nodiscard]] int entry_before(const RuleInput& in, const CommAction& action);

/// Returns "0SEND_F3 (row 0, after 0F3)". A position would mislead, because the lines of the file
/// also hold communication.
[[nodiscard]] std::string place_of(const RuleInput& in, const CommAction& action);

/// Appends a violation at the task nearest to the action and returns it. Requires: its row exists.
Violation& report_action(const RuleInput& in,
                         const char* rule,
                         const CommAction& action,
                         std::string message,
                         Violations& out);

}  // namespace stagecraft::rules
