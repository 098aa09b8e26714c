/// costs.json: what a schedule costs, in one file that the simulator, the builders that look at
/// costs and the memory rule read.
///
///     {"durations": {"F": 0.010, "B": 0.020},          seconds per task, of every stage
///      "stages": [{"stage": 3, "F": 0.015,             what one stage does differently, and
///                  "fixed": 4e8,                         bytes: weights, gradients, optimizer
///                  "activations": 2e7,                   bytes: kept from forward to backward
///                  "transient": 1e6}],                   bytes: only while a task of it runs
///      "group": 0.025,                                 seconds of an overlap group,
///      "groups": [{"stages": [0, 7], "duration": 0.02}], of one with these two stages
///      "link": {"latency": 1e-5, "bandwidth": 1e10},   between rows: seconds, bytes per second
///      "links": [{"from": 0, "to": 1, "latency": 5e-5}],
///      "edge_bytes": 1e6,                              what a stage hands to the next, in bytes
///      "edges": [{"from": 0, "to": 2, "bytes": 2e6}],
///      "input_release": 0.5}                           share of the activations that I frees
///
/// Every field may be absent. Durations default to F = I = W = 1, B = 2, U = 0; memory to nothing;
/// transfers to no time. Any other unit of time will do, if it is one throughout. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/cost_model.h"
#include "stagecraft/scheduler/memory_model.h"

namespace stagecraft {

struct Costs {
  CostModel times;
  MemoryModel memory;  ///< its budget is no part of the file

  friend bool operator==(const Costs&, const Costs&) = default;
};

/// Errors: ScheduleParse with line and column for a text that is no JSON, an unknown or repeated
///         field, a stage below 0 or beyond kMaxStages, a number that is negative or no number.
[[nodiscard]] Costs parse_costs(std::string_view text);

/// Returns the costs, one stage, link and edge per line; parse_costs() reads them back.
[[nodiscard]] std::string to_json(const Costs& costs);

}  // namespace stagecraft
