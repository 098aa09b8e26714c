/// profile measures the costs of a model on this machine, for planners: operator by operator, on
/// microbatches of several sizes, and of transfers between ranks.
///
///     const auto found = sc::profile(program, inputs, labels, {.microbatch_sizes = {1, 4}});
///     std::ofstream("costs.json") << sc::to_json(found.costs);
///
/// The model runs uncut, for any stages of the program. Times are those inside a step
/// (profile/model_times.h): their sum is that of a microbatch. A backward is divided between values
/// and parameters in proportion to the times that they take alone
/// (compiler/measure/operator_costs.h). That measurement also gives the bytes.
///
/// PRF-1: results are kept (profile_cache.h), and a profile of known results measures nothing. A
///        result is known by its graph on microbatches of one size, one count of threads, one
///        optimizer, with masters or without, and one kind of device.
/// PRF-2: the operators of all sizes are the same, in the same order.
/// PRF-3: the program, the batch and all gradients do not change.
/// PRF-4: a profile with more noise than `most_noise` is not kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/profile/link_costs.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/costs/noise_warning.h"

namespace stagecraft {

/// The largest number of measurements of a size that is too noisy.
inline constexpr int kMostTries = 3;

struct ProfileOptions {
  /// Samples of a microbatch: rows of the batch's first tensor that is split. The first size is
  /// that of Costs::operators. Empty: the program's own.
  std::vector<int> microbatch_sizes;
  int threads = 1;  ///< inside operators
  int repeats = 9;  ///< the median is taken over these
  Optimizer optimizer = AdamW{};
  bool master_weights = false;  ///< as TrainerOptions::master_weights
  RankHomes ranks = RankHomes::Threads;
  /// Folder of the kept profiles; empty: none. Absent: $XDG_CACHE_HOME/stagecraft/profiles, or
  /// below ~/.cache.
  std::optional<std::string> cache;
  bool fresh = false;  ///< measures known results again, and keeps the new ones
  /// The largest accepted noise. A size with more noise is measured again, kMostTries times in all.
  /// If it stays noisy, the result is the least noisy figures, with a note.
  double most_noise = kMostNoise;
  /// A function that is called before each measurement with its name, its number, and the number of
  /// all measurements.
  std::function<void(std::string_view what, int place, int all)> progress;
};

struct Profile {
  Costs costs;       ///< operators, parameters, links, device; stages are unchanged
  int measured = 0;  ///< sizes and links measured now; 0: all were known
  /// Seconds of a microbatch of each size, forward and backward, for all its operators together, in
  /// the order of the sizes.
  std::vector<double> microbatch_seconds;
  /// Notes for people: a broken file was measured again, the machine was busy.
  std::vector<std::string> notes;
};

/// Measures the program. `inputs`, `labels`: a batch like the one with which the program was
/// compiled; microbatches of `samples` are its first rows.
/// Errors: UsageArgument for sizes below 1, repeated or larger than the batch, for no repeats or no
/// threads, and for a tensor of which a sample does not have a whole number of rows; CompileShape
/// if the model cannot be captured for a size, or has other operators there; UsageFile for a cache
/// that cannot be written.
/// Thread: any; it captures models on this thread, and runs them on one of its own.
/// Cost: for each size some 40 forwards and backwards of a microbatch, up to three times as many on
///       a busy machine; about a second for links.
[[nodiscard]] Profile profile(const Program& program,
                              const Batch& inputs,
                              const Batch& labels,
                              const ProfileOptions& options = {});

}  // namespace stagecraft
