#include "stagecraft/scheduler/planners/pfeife/pfeife_sets.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

/// Returns the numbers of microbatches that may pass all stages before the next ones start;
/// ascending.
std::vector<int> blocks_of(int loops, const PfeifeWorkload& workload) {
  std::vector<int> blocks;
  for (int block = loops == 1 ? workload.microbatches : workload.devices;
       block <= workload.microbatches;
       ++block) {
    if (workload.microbatches % block == 0) {
      blocks.push_back(block);
    }
  }
  return blocks;
}

bool worth_trying(int loops, const PfeifeWorkload& workload, const PfeifeLimits& limits) {
  const int stages = loops * workload.devices;
  return loops == 1 ||
         (stages + 4 <= workload.operators && workload.forward > limits.least_forward * stages);
}

/// Returns the forwards before the first backward, by row. They distinguish the schedules of one
/// block.
std::vector<int> warm_ups(const PfeifeOptions& set, const PfeifeWorkload& workload) {
  std::vector<int> counts;
  for (int r = 0; r < workload.devices; ++r) {
    counts.push_back(std::min(
        (set.loops - 1) * set.block + workload.devices - r + set.extra[static_cast<std::size_t>(r)],
        set.loops * workload.microbatches));
  }
  return counts;
}

}  // namespace

std::vector<PfeifeOptions> pfeife_sets(const PfeifeWorkload& workload, const PfeifeLimits& limits) {
  std::vector<PfeifeOptions> sets;
  for (int loops = 1; loops <= limits.max_loops && worth_trying(loops, workload, limits); ++loops) {
    for (const int block : blocks_of(loops, workload)) {
      std::set<std::vector<int>> seen;
      for (int most = 0; most < workload.devices; ++most) {
        PfeifeOptions set{.loops = loops, .block = block, .extra = {}};
        for (int r = 0; r < workload.devices; ++r) {
          set.extra.push_back(std::min(workload.devices - 1 - r, most));
        }
        if (seen.insert(warm_ups(set, workload)).second) {
          sets.push_back(std::move(set));
        }
      }
    }
  }
  return sets;
}

std::string schedule_name(const PfeifeOptions& set) {
  return fmt::format(
      "pfeife loops={} block={} extra={}", set.loops, set.block, fmt::join(set.extra, ","));
}

}  // namespace stagecraft
