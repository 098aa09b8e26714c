/// pfeife_sets: which schedules of Pfeife's family (builders/pfeife.h) a planner tries.
///
/// Pure; any thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3.4 and its code. Where it
/// takes any block from the number of devices on, the builder wants one that divides the
/// microbatches; and one loop is tried however few operators there are.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/pfeife.h"

namespace stagecraft {

struct PfeifeLimits {
  int max_loops = 3;
  /// Several loops are tried where a stage's forward takes longer than this on average; below it,
  /// what starting a stage costs outweighs what loops gain.
  double least_forward = 6e-3;
};

/// What a set is asked for.
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
