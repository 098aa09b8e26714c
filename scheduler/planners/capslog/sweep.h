/// Sweep decides whether any cut keeps a threshold. It tries every operator as the first of each
/// device.
///
/// It is for memory with which fill_first() may miss cuts: a stage that starts later may hold more,
/// or a stage at a later place less. memory_cut() makes it once and calls it for every threshold;
/// it allocates only when it is made. One thread uses it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "stagecraft/scheduler/planners/capslog/fill_first.h"
#include "stagecraft/scheduler/planners/capslog/operator_memory.h"

namespace stagecraft {

class Sweep {
 public:
  Sweep(const OperatorMemory& memory, int devices);

  /// Does the work of fill_first(), but finds a cut if there is one. If there is none, the peak is
  /// infinite and `ends` stay as they are.
  /// Cost: devices x operators x the operators of a stage.
  Filled fill(const CutPart& part, double threshold, std::span<int> ends);

 private:
  /// Holds, by number of full devices and the next operator, the first operator of the last full
  /// device. If there are several, it is the latest, so that the first devices take as much as they
  /// can.
  [[nodiscard]] int& before(int devices, int op);
  /// Starts device `d` of the part at `first`. Returns the smallest stage that exceeded the
  /// threshold.
  double spread(const CutPart& part, int d, int first, double threshold);

  const OperatorMemory& memory_;
  const std::size_t width_;
  std::vector<int> before_;
};

}  // namespace stagecraft
