/// match_transfers: which send and which receive of a file move which value.
///
/// A part of check_listed_transfers(), which goes on with their order.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/rules.h"
#include "stagecraft/scheduler/rules/transfer.h"

namespace stagecraft::rules {

struct ListedTransfer {
  static constexpr int kNone = -1;

  Transfer value;
  int send = kNone;  ///< actions of the file
  int receive = kNone;
  bool in_time = false;  ///< both are there, the send behind its maker, the receive before its user
};

/// Returns every value that crosses rows with its actions; reports what does not fit: V02, V04,
/// V05, V07, V08 and, of V31, what is missing, has no other end or comes too early or too late.
[[nodiscard]] std::vector<ListedTransfer> match_transfers(const Input& in, Violations& out);

/// The entry before an action, or TaskGraph::kMissing. Requires: its row exists.
[[nodiscard]] int entry_before(const Input& in, const CommAction& action);

/// Returns "0SEND_F3 (row 0, after 0F3)": the lines of the file hold communication too, so a number
/// would mislead.
[[nodiscard]] std::string place_of(const Input& in, const CommAction& action);

/// Appends a violation at the task nearest to the action and returns it. Requires: its row exists.
Violation& report_action(const Input& in,
                         const char* rule,
                         const CommAction& action,
                         std::string message,
                         Violations& out);

}  // namespace stagecraft::rules
