#include "stagecraft/scheduler/planners/capslog/profiling_runs.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Returns a run in which as many stages of `size` layers as fit are active, starting at layer
/// `first`. Moves `first` past them.
ProfilingRun run_from(int& first, int layers, int devices, int size) {
  ProfilingRun run;
  if (first > 0) {
    run.push_back({.layers = first});
  }
  const int room = devices - static_cast<int>(run.size());
  int active = std::min(room, (layers - first) / size);
  if (active == room && first + active * size < layers) {
    --active;  // the rest needs a device
  }
  run.insert(run.end(), static_cast<std::size_t>(active), {.layers = size, .active = true});
  first += active * size;
  if (first < layers) {
    run.push_back({.layers = layers - first});
  }
  return run;
}

}  // namespace

std::vector<ProfilingRun> profiling_runs(int layers, int devices) {
  if (layers < 1 || devices < 3) {
    throw Error(Errc::UsageArgument,
                fmt::format("profiling needs at least one layer and 3 devices, one for the layers "
                            "on either side of those that run; found {} layers, {} devices",
                            layers,
                            devices));
  }
  std::vector<ProfilingRun> runs;
  for (int first = 0; first < layers;) {
    runs.push_back(run_from(first, layers, devices, 1));
  }
  for (const int start : {0, 1}) {
    for (int first = start; first <= layers - 2;) {
      runs.push_back(run_from(first, layers, devices, 2));
    }
  }
  return runs;
}

}  // namespace stagecraft
