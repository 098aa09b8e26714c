/// TrainJob holds everything that a run needs, made and judged before the first worker starts.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/trace/planned_with.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/decide/planned.h"
#include "stagecraft/tools/train/job/memory_bill.h"
#include "stagecraft/tools/train/job/rank_memory.h"
#include "stagecraft/tools/train/job/run_start.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

struct TrainJob {
  const TrainOptions options;
  const RunStart start;
  std::unique_ptr<Work> work;
  Choice choice;
  Execution execution;  ///< of the program by the choice's schedule
  MemoryBill memory;
  bool mirrors = false;               ///< each rank's state is kept by the next, too
  std::vector<RankMemory> ranks;      ///< what each holds, by rank
  std::vector<MemoryLimit> limits;    ///< from before the model was built
  std::optional<PlannedRun> planned;  ///< with --plan
  std::optional<PlannedWith> costs;   ///< of --costs, for this schedule
  std::optional<Costs> costs_out;     ///< with --costs-out: the costs known before the run
};

/// Tests the output paths, reads the text or the model, makes the open decisions, judges the memory
/// and compiles the model. Steps that can fail fast come first. Then writes --cut-out,
/// --strategy-out and, for a dry run, --costs-out.
/// Errors: those of each step; UsageFile for a file that could not be written later, and for two
///         options that name one file if one output would be lost; DeviceOutOfMemory, with the
///         bill, if memory does not suffice, unless forced.
[[nodiscard]] TrainJob make_job(const TrainOptions& options,
                                const RunStart& start,
                                Console& console);

/// Returns the request from which the work is made.
[[nodiscard]] WorkRequest work_request(const TrainOptions& options, const RunStart& start);

}  // namespace stagecraft::tools
