/// profile: what a model costs on this machine, for planners: operator by operator, on microbatches
/// of several sizes, and what lies between ranks.
///
///     const auto found = sc::profile(program, inputs, labels, {.microbatch_sizes = {1, 4}});
///     std::ofstream("costs.json") << sc::to_json(found.costs);
///
/// The model runs uncut, whatever the program's stages. Times are those inside a step
/// (executor/model_times.h): their sum is that of a microbatch. A backward is divided between
/// values and parameters in proportion to what they take alone (compiler/operator_costs.h), which
/// also tells bytes.
///
/// PRF-1: what was measured is kept (profile_cache.h), and a profile of what is known measures
///       nothing. Known is a graph on microbatches of one size, with one count of threads, one
///       optimizer and one kind of device.
/// PRF-2: the operators of all sizes are the same ones in the same order.
/// PRF-3: program, batch and everybody's gradients stay as they were.
/// PRF-4: no profile with more noise than `most_noise` is kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/actors/profile/link_costs.h"
#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/noise_warning.h"

namespace stagecraft {

/// How often a size is measured at most, while it is too noisy.
inline constexpr int kMostTries = 3;

struct ProfileOptions {
  /// Samples of a microbatch: rows of the batch's first tensor that is split. The first one is that
  /// of Costs::operators. Empty: the program's own.
  std::vector<int> microbatch_sizes;
  int threads = 1;  ///< inside operators
  int repeats = 9;  ///< the median of so many is taken
  Optimizer optimizer = AdamW{};
  RankHomes ranks = RankHomes::Threads;
  /// Where profiles are kept; empty: nowhere. Absent: $XDG_CACHE_HOME/stagecraft/profiles, or below
  /// ~/.cache.
  std::optional<std::string> cache;
  bool fresh = false;  ///< measures anew what is known, and keeps that
  /// A size that is noisier is measured again, kMostTries times in all. If it stays so, the least
  /// noisy figures are returned with a note.
  double most_noise = kMostNoise;
  /// Told what is measured next, and its place among all that there is to do.
  std::function<void(std::string_view what, int place, int all)> progress;
};

struct Profile {
  Costs costs;       ///< operators, parameters, links, device; stages are left as they are
  int measured = 0;  ///< sizes and links that were measured now; 0: all was known
  /// Seconds of a microbatch of each size, forward and backward, as all its operators together
  /// took; in the order of the sizes.
  std::vector<double> microbatch_seconds;
  /// What a person should know: a broken file was measured anew, the machine was busy.
  std::vector<std::string> notes;
};

/// `inputs`, `labels`: a batch as the program was compiled for; microbatches of `samples` are its
/// first rows.
/// Errors: UsageArgument for sizes below 1, twice or larger than the batch, for no repeats or
///         threads, and for a tensor whose rows no sample has a whole number of; CompileShape where
///         the model cannot be captured for a size, or has other operators there; UsageFile for a
///         cache that cannot be written.
/// Thread: any; models are captured on it, and run on one of its own.
/// Cost: for each size some 40 forwards and backwards of a microbatch, up to three times as many on
///       a busy machine; about a second for links.
[[nodiscard]] Profile profile(const Program& program,
                              const Batch& inputs,
                              const Batch& labels,
                              const ProfileOptions& options = {});

}  // namespace stagecraft
