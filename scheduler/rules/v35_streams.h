/// V35: all rows run to their end even if a send and its receive are one rendezvous and each stream
/// works through its queue in order.
///
/// The rule is checked after the place of each transfer in its rows' streams is known: by the order
/// in which tasks make and need the values (v31_transfers.cc), or by a file's list
/// (v31_listed_transfers.cc). The caller first makes sure that the rows run by themselves (V29);
/// otherwise they would get stuck here again.
/// A cycle is described by its turns, like that of V29: of entries that follow each other in a row,
/// and of transfers that follow each other in a queue, it names the first and the last.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/parts/rule_input.h"
#include "stagecraft/scheduler/rules/parts/transfer.h"

namespace stagecraft::rules {

/// Rendezvous is a transfer with the places at which its two ends are issued.
struct Rendezvous {
  Transfer transfer;
  /// The last entry of the sending row, and of the receiving row, that must come before the
  /// transfer; kMissing if there is none.
  int sent_after = TaskGraph::kMissing;
  int received_after = TaskGraph::kMissing;
  int send_place = 0;  ///< a lower place comes earlier in a row's queue
  int receive_place = 0;
};

/// Returns the cycle with the fewest turns in which entries and transfers wait for each other,
/// without a message; nothing if there is none. `name(i)`: returns the name of transfer i in the
/// cycle.
[[nodiscard]] std::optional<Violation> find_blocked_streams(
    const RuleInput& in,
    const std::vector<Rendezvous>& transfers,
    TransferStreams streams,
    const std::function<std::string(std::size_t)>& name);

}  // namespace stagecraft::rules
