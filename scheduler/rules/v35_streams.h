/// V35: with a send and its receive as one rendezvous, and each stream working through its queue in
/// order, all rows still run to their end.
///
/// Looked for once it is known where each transfer stands in its rows' streams: as the tasks make
/// and need the values (v31_transfers.cc), or as a file lists them (v31_listed_transfers.cc).
/// Whoever asks makes sure first that the rows run by themselves (V29): they would get stuck here
/// again.
/// A cycle is told by its turns, as that of V29 is: of entries that follow each other in a row, and
/// of transfers that follow each other in a queue, the first and the last.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/rules/rules.h"
#include "stagecraft/scheduler/rules/transfer.h"

namespace stagecraft::rules {

/// A transfer and when its two ends are issued.
struct Rendezvous {
  Transfer transfer;
  /// The last entry of the sending row, and of the receiving one, that comes before it; kMissing
  /// where none must.
  int sent_after = TaskGraph::kMissing;
  int received_after = TaskGraph::kMissing;
  int send_place = 0;  ///< the lower, the earlier in a row's queue
  int receive_place = 0;
};

/// Returns the cycle with the fewest turns in which entries and transfers wait for each other, or
/// nothing when there is none; its message is still empty. `name(i)`: how the cycle names
/// transfer i.
[[nodiscard]] std::optional<Violation> find_blocked_streams(
    const Input& in,
    const std::vector<Rendezvous>& transfers,
    TransferStreams streams,
    const std::function<std::string(std::size_t)>& name);

}  // namespace stagecraft::rules
