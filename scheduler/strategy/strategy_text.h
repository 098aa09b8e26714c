/// strategy_text defines the text form of a strategy: one directive per line; `#` begins a comment.
///
///     split     {}     dim=MB n=8
///     place     {PP:0} on [0,2]                 # several ranks run the stage side by side
///     place     {PP:1} on [1,3] stream=pp       # transfers in both directions on one stream
///     replicate {PP:*} on [0,2] bucket_size=25M reduce_stream=dp
///     order     [{PP:0,MB:0,PASS:F}] [{PP:0,MB:0,PASS:B},{PP:0,MB:1,PASS:F}]
///
/// A filter lists tags with a number or `*`, and a pass: F, B, BI or BW. A group of an order is a
/// list of filters in brackets; the members of a group may overlap. `shard_optimizer`,
/// `shard_grads` and `shard_params` of replicate, and the directive `shard`, are part of the form.
/// parse_strategy reads it and to_string writes it. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// Returns whether the first line that is no comment begins with the name of a directive, or any
/// line has the form of one: a word before a brace or bracket.
[[nodiscard]] bool looks_like_strategy(std::string_view text);

/// Reads the strategy. Errors: ScheduleParse, with line and column of everything that is no
/// directive.
[[nodiscard]] Strategy parse_strategy(std::string_view text);

/// Returns the text of a file: a line per directive.
[[nodiscard]] std::string to_string(const Strategy& strategy);
/// Returns the line of the directive, without the newline.
[[nodiscard]] std::string to_string(const Directive& directive);

}  // namespace stagecraft
