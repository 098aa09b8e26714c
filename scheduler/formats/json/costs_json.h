/// costs.json holds the costs of a schedule in one file, with one section for each tool that
/// measures or reads it. Tools and programs write and read it; any thread may do so.
///
///     {"version": 1,
///      "device": {"name": "EPYC 7B13", "threads": 1,     where the figures were measured,
///                 "noise": 0.02,                          interquartile range over median;
///                 "task": 2e-5, "step": 5e-4,             seconds of a task beside its operators,
///                                                         and of a step beside its tasks;
///                 "split": 1.1,                           I and W over B, 1 if absent;
///                 "split_bytes": 1.2,                     bytes kept between them over before I
///                 "precision": "bf16",                    type in which operators computed
///                 "processors": 2},                       shared by rows; 0: each has its own
///      "operators": [{"id": 0, "name": "aten::linear",   of one microbatch; the place in the
///                     "stage": 0,                          forward, and the stage, if in one
///                     "forward": 2e-3,                     seconds; backward toward values
///                     "backward_input": 2e-3,              that were computed,
///                     "backward_weight": 2e-3,             and toward parameters
///                     "kept": 4e6,                         bytes: from forward to backward
///                     "transient": 0,                      bytes: only while it runs
///                     "waiting": 3e6, "gradient": 1e6,     bytes: from I to W; of them, gradient
///                     "sums": 1e-5,                        seconds, part of the backward: adding
///                                                          gradients to those of other readers
///                     "update": 1e-4,                      seconds: of its parameters, once a step
///                     "output": 4e6, "input": 1e6,         bytes: returned, read of the batch
///                     "reads": [{"from": 0, "output": 1,   results of operators before it: whose,
///                                "bytes": 2e6}],             which of them (0 if absent)
///                     "parameters": ["0.weight"],          by name
///                     "joined": true}],                    no cut between it and the one before
///      "samples": 4,                                     of the microbatch of "operators",
///      "batch": 16,                                      of a step of the data, if they say it,
///      "sizes": [{"samples": 8, "operators": [...]}],    and their costs on others
///      "parameters": [{"name": "0.weight",
///                      "bytes": 1e6, "held": 4e6}],      with gradient and optimizer state
///      "stages": {
///        "usual": {"F": 0.010, "B": 0.020},              seconds per task, of every stage
///        "each": [{"stage": 3, "F": 0.015,               the differences of one stage, and
///                  "fixed": 4e8,                           bytes: weights, gradients, optimizer
///                  "trained": 1e8,                         part of it: weights that train,
///                  "states": 2e8,                          and optimizer
///                  "activations": 2e7,                     bytes: from forward to backward
///                  "transient": 1e6,                       bytes: only while a task of it runs
///                  "waiting": 1e7,                         bytes: from I to W, and only while
///                  "input_transient": 2e6,                 I runs
///                  "weight_transient": 1e6,                or W runs
///                  "recompute": 0.012,                     seconds that B and I take besides, and
///                  "replayed": 8e7}],                      bytes made by that, from I to W
///        "group": 0.025,                                 seconds of an overlap group,
///        "groups": [{"stages": [0, 7],                   of one with these two stages
///                    "duration": 0.02}],
///        "input_release": 0.5},                          share of the activations that I frees
///      "links": {
///        "usual": {"latency": 1e-5, "bandwidth": 1e10},  between rows: seconds, bytes per second
///        "each": [{"from": 0, "to": 1, "latency": 5e-5}],
///        "edge_bytes": 1e6,                              bytes that a stage hands to the next
///        "edges": [{"from": 0, "to": 2, "bytes": 2e6}]}}
///
/// Everything but the version and the subject of an entry is optional. F, I and W default to 1, B
/// to 2, U and recompute to 0; memory defaults to nothing; transfers default to no time. If some of
/// B, I and W are absent, they are computed from the others (backward_times.h), and a note says so.
/// An entry of "each" takes absent values from "usual"; a "bandwidth" of null is infinite. Any
/// other unit of time works if the file uses it throughout.
/// CJ-1: written costs are read back equal, and an unknown field is noted, never silently lost.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft {

/// The version of written files, and the newest version that can be read.
inline constexpr int kCostsVersion = 1;

struct ReadCosts {
  Costs costs;
  /// Holds a line, with its place, for each unknown section and field. The reader leaves these out.
  /// A later program may have written the field, or a user may have misspelled it; then the line
  /// names the probable field. Also holds a line for times of backwards that were computed from
  /// others.
  std::vector<std::string> notes;
};

/// Reads the costs.
/// Errors: ScheduleParse with line and column for a text that is no JSON, or for a version that is
/// missing or newer. Otherwise one ScheduleParse lists all of these: a field or an entry that
/// appears twice, a stage below 0 or beyond kMaxStages, a number that is negative or no number, and
/// one half of a backward that is stated without the whole or is longer than it.
[[nodiscard]] ReadCosts parse_costs(std::string_view text);

/// Returns the costs, one operator, stage, link and edge per line; parse_costs() reads them back.
/// Requires: finite numbers; a bandwidth may be infinite.
[[nodiscard]] std::string to_json(const Costs& costs);

}  // namespace stagecraft
