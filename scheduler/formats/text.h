/// text.h defines the text form of a schedule: one line per row, cells `<stage><kind><microbatch>`,
/// `.` for a bubble.
///
///     @edges 0-2,1-2        # optional header lines, before the first row
///     0F0 0F1 .   0B0       # `0F7|7B3` is an overlap group, `0U` an update
///     1F0 1F1 .   1B0       # `F0` leaves out the stage if it is the row's own number
///     .   2F0 2B0 .
///
/// Headers: `@form array|list`, `@rows N`, `@stages N`, `@microbatches N`, `@edges 0-1,1-2`,
/// `@replicas 0=4,1=5` (stage = its next copy), `@frozen 0,1` (stages whose weights do not train),
/// `@sizes 1,2,2` (how many of the step's microbatches each stage takes as one of its own), and
/// `@place 0=0,2 1=1,3` (row = its ranks, which run it side by side on samples of their own).
/// Defaults: an array, one chain over the stages that appear, all of which train on microbatches of
/// size 1.
/// Schedule::parse reads this format and to_string(Schedule) writes it. Text outside the grammar is
/// an Error, which lists all its places together; a breach of a rule is not. Any thread.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/formats/parts/expressible.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

inline constexpr formats::FormatWords kTextWords{.name = "the text form", .places = true};
inline constexpr formats::FormatWords kListWords{
    .name = "the text form", .bubbles = false, .places = true};

/// Returns the edges of "0-1,1-2". Errors: ScheduleParse with the part that is no edge.
[[nodiscard]] std::vector<StageGraph::Edge> parse_edges(std::string_view text);

/// Returns the stage graph of "0-1,1-2", with as many stages as it names.
/// Errors: as parse_edges.
[[nodiscard]] StageGraph parse_stage_graph(std::string_view edges);

}  // namespace stagecraft
