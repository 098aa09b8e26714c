/// fill_first gives each device of a row operators as long as they fit below a threshold. The last
/// device takes the rest.
///
/// It is the inner step of memory_cut(). Allocates nothing. Pure.
/// Source: CAPSlog, algorithm 2. Its loop makes one stage too many, and its bound can leave the
/// last device without a layer; here each device keeps one operator.
#pragma once

#include <limits>
#include <span>

#include "stagecraft/scheduler/planners/capslog/operator_memory.h"

namespace stagecraft {

/// CutPart holds operators [first, end) for the devices [place, place + devices). Each device takes
/// at least one operator.
struct CutPart {
  int first = 0;
  int end = 0;
  int place = 0;
  int devices = 1;
};

struct Filled {
  double peak = 0;  ///< of the fullest device; above the threshold if the operators do not fit
  /// The smallest stage that exceeded the threshold: every threshold below it gives the same
  /// layout.
  double next = std::numeric_limits<double>::infinity();
};

/// Writes the end of each device's operators into `ends`, by place.
Filled fill_first(const OperatorMemory& memory,
                  const CutPart& part,
                  double threshold,
                  std::span<int> ends);

}  // namespace stagecraft
