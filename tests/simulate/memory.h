/// Memory is what LibTorch gives to the processes of a simulation. A fault refuses a process some
/// later allocation of a worker's thread, once.
///
/// There is one for all runs of the program, as LibTorch has one allocator.
#pragma once

#include <cstdint>
#include <map>

#include "stagecraft/tests/simulate/strands.h"

namespace stagecraft::simulation {

class Memory {
 public:
  [[nodiscard]] static Memory& of_program();

  /// Refuses the process one allocation, after `granted` more. Replaces an earlier refusal that has
  /// not come yet.
  void refuse(ProcessNumber process, std::int64_t granted);
  /// Takes back all that has not come yet.
  void grant_all() { left_.clear(); }

  /// Counts an allocation of the strand that runs. Returns whether it is the refused one.
  [[nodiscard]] bool is_refused();

 private:
  std::map<ProcessNumber, std::int64_t> left_;  ///< allocations before the refused one
};

}  // namespace stagecraft::simulation
