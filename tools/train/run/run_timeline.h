/// RunTimeline uses the timelines that the ranks of a training run record: for the trace file and
/// the costs, if requested, and for the report on planned against measured.
///
/// The run makes it, feeds it with every step, and uses it on its thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/trainer/steps/step_future.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/scheduler/measured/measurements.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/trace/trace_file.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

class RunTimeline {
 public:
  /// Begins the trace, and replaces an older one. `stages`: of each rank, as text. `job` and `plan`
  /// outlive it.
  /// Errors: UsageFile for a --trace that cannot be written.
  RunTimeline(const TrainJob& job, const Plan& plan, const std::vector<std::string>& stages);

  /// Adds a step, and returns it by the schedule's rows; null if the timeline of a rank is missing.
  /// Requires: it was recorded.
  std::shared_ptr<const MeasuredStep> add(const StepResult& result);

  /// Reports planned against measured. `all`: with the table of ranks; otherwise people get a few
  /// lines. Requires: a step was added.
  void report(Progress& progress, bool all) const;

  /// Writes --costs-out with the measured costs. Requires: a step was added. Errors: UsageFile.
  void write_costs(Console& console) const;

  /// Ends the trace. Errors: UsageFile if it could not be written to its end.
  void close();

 private:
  const TrainJob& job_;
  const Plan& plan_;
  TraceHeader header_;
  std::optional<TraceWriter> trace_;
  Measurements measured_;
};

}  // namespace stagecraft::tools
