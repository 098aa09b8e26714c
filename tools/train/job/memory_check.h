/// check_memory refuses a run that needs more memory than there is, and says what would fit.
#pragma once

#include <vector>

#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

/// Checks the machine, and the GPUs in all: a single one may still lack memory. A dry run only
/// compiles. `activations`: as in MemoryBill.
/// Errors: DeviceOutOfMemory, with the bill, and with the options that need less.
void check_memory(const TrainOptions& options,
                  const Choice& choice,
                  const WorkBytes& work,
                  double activations,
                  const std::vector<MemoryLimit>& limits);

}  // namespace stagecraft::tools
