#include "stagecraft/scheduler/planners/capslog/layer_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

void require_amounts(const std::vector<double>& alone, const std::vector<double>& added) {
  if (alone.empty() || alone.size() != added.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the memory of layers has two figures for each, found {} of layers "
                            "alone and {} of added ones",
                            alone.size(),
                            added.size()));
  }
  for (std::size_t i = 0; i < alone.size(); ++i) {
    if (!std::isfinite(alone[i]) || alone[i] < 0 || (i > 0 && !std::isfinite(added[i]))) {
      throw Error(Errc::UsageArgument,
                  fmt::format("layer {} holds {} bytes alone and adds {}; measure it again",
                              i,
                              alone[i],
                              added[i]));
    }
  }
}

}  // namespace

LayerMemory::LayerMemory(std::vector<double> alone, std::vector<double> added) {
  require_amounts(alone, added);
  alone_ = std::move(alone);
  grown_ = std::move(added);
  grown_.front() = 0;
  for (std::size_t i = 1; i < grown_.size(); ++i) {
    grown_[i] = grown_[i - 1] + std::max(0.0, grown_[i]);
    const int layer = static_cast<int>(i);
    filling_is_exact_ = filling_is_exact_ && of(layer, layer) <= of(layer - 1, layer);
  }
}

}  // namespace stagecraft
