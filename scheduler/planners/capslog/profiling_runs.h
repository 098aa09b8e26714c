/// profiling_runs returns the few partitionings in which a model must run to determine every
/// layer's memory: alone (M_i), and added to the layer before it (M_a).
///
///     10 layers, 4 devices; * runs, the other stages are trimmed:
///     1* 1* 1* 7     3 1* 1* 5     5 1* 1* 3     7 1* 1* 1*       each alone
///     2* 2* 2* 4     6 2* 2*       1 2* 2* 5     5 2* 2* 1        each with the one before
///
/// Layers of trimmed stages are left out before the model goes to its devices; only the values that
/// they would pass to their neighbors are made up. M_a(l) = mem({l-1, l}) - M_i(l-1), see
/// LayerMemory. Pure.
/// PRO-1: every layer is alone in some active stage, and every pair of neighbors forms one.
/// Source: CAPSlog, sections III-A and IV. Its generator takes one more run if the last device is
/// left with one layer.
#pragma once

#include <vector>

namespace stagecraft {

struct ProfiledStage {
  int layers = 0;
  bool active = false;  ///< its layers are built and run

  friend bool operator==(const ProfiledStage&, const ProfiledStage&) = default;
};

/// By device; the sum of the layers is the model's number of layers.
using ProfilingRun = std::vector<ProfiledStage>;

/// Keeps PRO-1. Errors: UsageArgument for no layer or fewer than 3 devices.
[[nodiscard]] std::vector<ProfilingRun> profiling_runs(int layers, int devices);

}  // namespace stagecraft
