/// profiling_runs: the few partitionings in which a model must run so that every layer's memory can
/// be told: alone (M_i), and added to the layer before it (M_a).
///
///     10 layers, 4 devices, * runs, the others are trimmed:
///     1* 1* 1* 7     3 1* 1* 5     5 1* 1* 3     7 1* 1* 1*       each alone
///     2* 2* 2* 4     6 2* 2*       1 2* 2* 5     5 2* 2* 1        each with the one before
///
/// Layers of trimmed stages are left out before the model goes to its devices; only what they would
/// pass to their neighbours is made up. M_a(l) = mem({l-1, l}) - M_i(l-1), see LayerMemory. Pure.
/// PRO-1: every layer is the only one of some active stage, and every two neighbours are one.
/// Source: CAPSlog, sections III-A and IV; its generator takes a run more where the last device is
/// left with one layer.
#pragma once

#include <vector>

namespace stagecraft {

struct ProfiledStage {
  int layers = 0;
  bool active = false;  ///< its layers are built and run

  friend bool operator==(const ProfiledStage&, const ProfiledStage&) = default;
};

/// By device; the layers of all add up to the model's.
using ProfilingRun = std::vector<ProfiledStage>;

/// Keeps PRO-1. Errors: UsageArgument for no layer or fewer than 3 devices.
[[nodiscard]] std::vector<ProfilingRun> profiling_runs(int layers, int devices);

}  // namespace stagecraft
