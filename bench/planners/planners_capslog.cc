#include "stagecraft/bench/planners/planners_capslog.h"

#include <algorithm>
#include <random>
#include <vector>

#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/scheduler/planners/capslog/memory_cut.h"

namespace stagecraft::bench {
namespace {

/// Returns layers of 50 MB to 2 GB, to the byte. Each adds somewhat less than it holds alone.
LayerMemory random_layers(std::mt19937& random) {
  std::uniform_int_distribution<int> megabytes(50, 2'000);
  std::uniform_int_distribution<int> bytes(0, 1 << 20);
  std::vector<double> alone;
  std::vector<double> added;
  for (int layer = 0; layer < kCapslogLayers; ++layer) {
    added.push_back(megabytes(random) * 1e6 + bytes(random));
    alone.push_back(added.back() + 3e8);
  }
  return LayerMemory(std::move(alone), std::move(added));
}

}  // namespace

double capslog_seconds() {
  constexpr int kModels = 101;
  constexpr int kRepeats = 20;
  std::mt19937 random(1);
  std::vector<double> seconds;
  for (int model = 0; model < kModels; ++model) {
    const LayerMemory memory = random_layers(random);
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
