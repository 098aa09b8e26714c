/// RunMetrics: the folder of --metrics during a run.
///
/// Told by the run of each step and evaluation; single-threaded. A folder that cannot be written
/// any more does not end a run: that is told once, and again at the end.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/step_result.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/metrics_writer.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/job.h"
#include "stagecraft/tools/train/progress.h"

namespace stagecraft::tools {

class RunMetrics {
 public:
  /// `steps_made`: by runs before. Without --metrics it does nothing. Both outlive it.
  /// Errors: those of MetricsWriter.
  RunMetrics(const TrainJob& job, std::int64_t steps_made, Console& console);

  /// `units`: tokens of the step, or samples where the work has none.
  void step(const StepResult& result, std::int64_t units);
  /// After the step just told.
  void evaluated(const EvalLine& found);
  /// Writes what was told of the last step.
  void flush();

  /// Errors: what writing failed with, if it did.
  void close();

 private:
  const TrainJob& job_;
  Console& console_;
  std::optional<MetricsWriter> writer_;
  std::int64_t step_ = 0;
  Metrics told_;  ///< of this step, not written yet
  std::optional<Error> failure_;
};

}  // namespace stagecraft::tools
