/// piper_strategy reads and writes a whole strategy as Piper's directives: split, place, replicate,
/// shard and order, with their streams.
///
///     [{"op": "split", "filter": {}, "dim_name": "MB", "num_microbatches": 2},
///      {"op": "place", "filter": {"PP": 0}, "devices": [0, 2], "stream": "pp"},
///      {"op": "replicate", "filter": {"PP": 0}, "devices": [0, 2], "reduce_stream": "dp"}, ...]
///
/// The schedule format of the same files (formats/json/piper.h) takes only the order of rows. Here
/// nothing of a file is left out. The directives mean the same in both systems. Their words differ:
/// Piper has devices for ranks, counts buckets in megabytes (1024 * 1024 bytes), and has no word
/// for sharded optimizer states alone. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// Returns whether the text is a list of JSON objects.
[[nodiscard]] bool looks_like_piper_strategy(std::string_view text);

/// Reads the strategy. Errors: ScheduleParse with line and column of everything that Piper does not
/// read, and of values that a strategy cannot have.
[[nodiscard]] Strategy parse_piper_strategy(std::string_view text);

/// Returns a file that parse_piper_strategy() and Piper read.
/// Errors: ScheduleParameter with everything that Piper has no words for: `shard_optimizer`, a
/// bucket size that is no whole number of megabytes, an order of one group, and no ranks.
[[nodiscard]] std::string to_piper(const Strategy& strategy);

}  // namespace stagecraft
