/// The planner `pfeife` on a model of the size of SDXL, beside its paper's search left to finish.
///
/// The model is made up: as many operators as the paper counts, in the form of a U-Net, with times
/// and bytes that are uneven in the way of its blocks. Knows no LibTorch.
#pragma once

#include <string>

#include "stagecraft/scheduler/costs.h"

namespace stagecraft::bench {

/// A U-Net of 1,645 operators: skips from every block down to its counterpart up, an embedding of
/// the time step and a text that blocks all the way read. Equal seeds make equal costs. Seconds and
/// bytes of one sample.
[[nodiscard]] Costs unet_costs(unsigned seed);

struct PfeifeFigures {
  int operators = 0;
  int devices = 8;
  int microbatches = 8;
  double seconds = 0;        ///< of the whole search: one, two and three loops
  std::string schedule;      ///< what that finds
  double step = 0;           ///< of it
  double plain_seconds = 0;  ///< of the paper's beam over all sets of three loops, to its end
  double plain_step = 0;
};

/// What the paper says that three loops of SDXL on 8 devices take to search.
inline constexpr double kPublishedSeconds = 600;

/// Cost: some seconds on one core.
[[nodiscard]] PfeifeFigures pfeife_figures(unsigned seed = 1);

}  // namespace stagecraft::bench
