/// RunMetrics is the folder of --metrics during a run.
///
/// The run passes it each step and evaluation; single-threaded. A folder that can no longer be
/// written does not end a run: the failure is reported once, and again at the end.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/files/metrics_writer.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

class RunMetrics {
 public:
  /// `steps_made`: by earlier runs. Does nothing without --metrics. Both other arguments must
  /// outlive it.
  /// Errors: those of MetricsWriter.
  RunMetrics(const TrainJob& job, std::int64_t steps_made, Console& console);

  /// Adds a step. `units`: tokens of the step, or samples if the work has no tokens.
  void step(const StepResult& result, std::int64_t units);
  /// Adds an evaluation after the last step passed to step().
  void evaluated(const EvalLine& found);
  /// Adds to the next row that the run was healed before it.
  void healed(std::int64_t restarts, double seconds);
  /// Adds to the next row that a step was made again before it.
  void repeated();
  /// Adds a step that was made, and whose results were lost with a worker.
  void lost(std::int64_t step);
  /// Writes the metrics of the last step, unless it has a row.
  void flush();

  /// Ends. Writes a row of its own for what has happened since that of the last step.
  /// Errors: the failure of a write, if one failed.
  void close();

 private:
  void add_restarts();
  void write();

  const TrainJob& job_;
  Console& console_;
  std::optional<MetricsWriter> writer_;
  std::int64_t step_ = 0;
  std::int64_t written_ = 0;                  ///< step of the last row
  std::int64_t restarts_ = 0, repeated_ = 0;  ///< since that row
  double healing_seconds_ = 0.0;              ///< likewise
  Metrics values_;                            ///< of this step
  std::optional<Error> failure_;
};

}  // namespace stagecraft::tools
