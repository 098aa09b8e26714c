#include "stagecraft/bench/planners/planners_capslog.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/scheduler/planners/capslog/memory_cut.h"
#include "stagecraft/scheduler/planners/capslog/operator_memory.h"
#include "stagecraft/scheduler/planners/request/work_graph.h"

namespace stagecraft::bench {
namespace {

/// Returns a chain of layers that keep 50 MB to 2 GB, to the byte, and hand on 300 MB.
Costs random_layers(std::mt19937& random) {
  std::uniform_int_distribution<int> megabytes(50, 2'000);
  std::uniform_int_distribution<int> bytes(0, 1 << 20);
  Costs costs;
  for (int layer = 0; layer < kCapslogLayers; ++layer) {
    OperatorCost cost{.id = layer, .kept = megabytes(random) * 1e6 + bytes(random)};
    if (layer > 0) {
      cost.reads = {{layer - 1, 0, 3e8}};
    }
    costs.operators.push_back(std::move(cost));
  }
  return costs;
}

}  // namespace

double capslog_seconds() {
  constexpr int kModels = 101;
  constexpr int kRepeats = 20;
  std::mt19937 random(1);
  std::vector<double> seconds;
  for (int model = 0; model < kModels; ++model) {
    const WorkGraph graph = WorkGraph::of(random_layers(random), 1);
    const OperatorMemory memory(graph, std::vector<int>(kCapslogDevices, 1));
    double peaks = 0;
    const double all = seconds_of([&] {
      for (int i = 0; i < kRepeats; ++i) {
        peaks += memory_cut(memory, kCapslogDevices).peak();
      }
    });
    seconds.push_back(peaks > 0 ? all / kRepeats : 0);
  }
  std::ranges::nth_element(seconds, seconds.begin() + kModels / 2);
  return seconds[kModels / 2];
}

}  // namespace stagecraft::bench
