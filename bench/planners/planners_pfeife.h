/// planners_pfeife measures the planner `pfeife` on a model of the size of SDXL, and the search of
/// its paper run to its end.
///
/// The model is made up. It has as many operators as the paper counts, in the form of a U-Net, with
/// times and bytes that vary like its blocks. This file does not use LibTorch.
#pragma once

#include <string>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft::bench {

/// Returns the costs of a U-Net of 1,645 operators. Skips lead from every block on the way down to
/// its counterpart on the way up. All blocks read an embedding of the time step and a text. Equal
/// seeds make equal costs. Units: seconds and bytes of one sample.
[[nodiscard]] Costs unet_costs(unsigned seed);

struct PfeifeFigures {
  int operators = 0;
  int devices = 8;
  int microbatches = 8;
  double seconds = 0;        ///< of the whole search, with one, two and three loops
  std::string schedule;      ///< the schedule found
  double step = 0;           ///< of that schedule
  double plain_seconds = 0;  ///< of the paper's beam over all sets of three loops, run to its end
  double plain_step = 0;
};

/// The paper's search time for three loops of SDXL on 8 devices.
inline constexpr double kPublishedSeconds = 600;

/// Measures the planner. Cost: a few seconds on one core.
[[nodiscard]] PfeifeFigures pfeife_figures(unsigned seed = 1);

}  // namespace stagecraft::bench
