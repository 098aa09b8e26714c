/// Sweep decides whether operators fit below a threshold at all, by trying every operator with
/// which each device could begin.
///
/// It is for memory with which fill_first() may miss cuts: a stage that starts later may hold more,
/// or a stage at a later place less. Made once by memory_cut() and called for every threshold;
/// allocates only when made. Used by one thread.
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

  /// As fill_first(), but finds a cut if there is one. If there is none, the peak is infinite and
  /// `ends` stay as they are.
  /// Cost: devices x operators x the operators of a stage.
  Filled fill(const CutPart& part, double threshold, std::span<int> ends);

 private:
  /// By number of full devices and the next operator: the first operator of the last full device.
  /// If there are several, it is the latest, so that the first devices take as much as they can.
  [[nodiscard]] int& before(int devices, int op);
  /// Starts device `d` of the part at `first`. Returns the smallest stage that exceeded the
  /// threshold.
  double spread(const CutPart& part, int d, int first, double threshold);

  const OperatorMemory& memory_;
  const std::size_t width_;
  std::vector<int> before_;
};

}  // namespace stagecraft
