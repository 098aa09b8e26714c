/// ValidateOptions holds a caller's requirements of a schedule beyond its own headers.
///
/// A value; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/model/communication.h"
#include "stagecraft/scheduler/strategy/sharing.h"

namespace stagecraft {

/// TransferStreams gives the number of queues that a row has for its sends and receives.
enum class TransferStreams : std::uint8_t {
  PerPeerAndDirection,  ///< one per other row and direction: never a deadlock of its own
  OnePerRank,           ///< one for all transfers: V35 finds deadlocks of this queue
};

struct ValidateOptions {
  std::optional<int> microbatches;  ///< of the step; absent: the schedule's own
  std::optional<int> devices;       ///< required number of rows; absent: the schedule's own header
  bool forward_only = false;        ///< evaluation: missing backwards are no fault
  bool microbatch_order = false;    ///< V27: every stage takes microbatches in order
  bool pad_rows = false;            ///< short rows end in bubbles instead of a breach of V01
  std::optional<MemoryModel> memory;   ///< V30: the bytes that a row may hold
  Sharing sharing = Sharing::Nothing;  ///< V30: what copies of a stage share
  /// V31, V35: if present, transfers are matched by order only, on these streams. Absent: by name,
  /// in any order.
  std::optional<TransferStreams> ordered_transfers;
  /// The actions that a file lists in addition to the tasks, row by row. If it lists any transfer,
  /// all transfers are judged in the file's own order, on one stream per row unless
  /// `ordered_transfers` says otherwise. If it lists none, they follow from the tasks.
  std::span<const CommAction> communication;
};

}  // namespace stagecraft
