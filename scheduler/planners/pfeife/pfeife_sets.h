/// pfeife_sets returns the schedules of Pfeife's family (builders/pfeife.h) that a planner tries.
///
/// Pure; any thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3.4 and its code. The
/// paper takes any block from the number of devices on; our builder needs a block that divides the
/// microbatches. We try one loop for any number of operators.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/pfeife.h"

namespace stagecraft {

struct PfeifeLimits {
  int max_loops = 3;
  /// The shortest average forward of a stage for which several loops are tried. Below it, starting
  /// a stage costs more than loops gain.
  double least_forward = 6e-3;
};

/// PfeifeWorkload is the workload of the sets.
struct PfeifeWorkload {
  int operators = 1;
  int devices = 1;
  int microbatches = 1;
  double forward = 0;  ///< of all operators, on one microbatch
};

/// Returns the sets by loops, then block, then extra forwards, each schedule once.
[[nodiscard]] std::vector<PfeifeOptions> pfeife_sets(const PfeifeWorkload& workload,
                                                     const PfeifeLimits& limits = {});

/// Returns "pfeife loops=2 block=4 extra=1,0".
[[nodiscard]] std::string schedule_name(const PfeifeOptions& set);

}  // namespace stagecraft
