/// MetricsWriter: the numbers of a run by step, in a folder: a table, metrics.csv, and a file that
/// TensorBoard reads.
///
///   sc::MetricsWriter metrics("runs/first", {"loss", "accuracy"}, trainer.steps());
///   metrics.write(step, {{"loss", 0.31}, {"accuracy", 0.92}});
///
/// Used by `stagecraft train --metrics` and by programs; step_metrics.h has the numbers of a step.
/// Thread: one at a time.
/// MW-1: each step is written as soon as it is told: of a process that is killed all but the last
///       is there.
/// MW-2: a run that goes on after some steps keeps the rows of these, and drops later ones, which
///       it makes again; none comes twice.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft {

using Metrics = std::vector<std::pair<std::string, double>>;

class MetricsWriter {
 public:
  /// Makes the folder where there is none. `columns`: what steps may have; a table that is there
  /// keeps its own and gets those it lacks. `steps_made`: those before this run.
  /// Errors: UsageFile for a folder that cannot be written to, or has another kind of metrics.csv;
  ///         UsageArgument for names that a table cannot have.
  MetricsWriter(const std::string& folder,
                const std::vector<std::string>& columns,
                std::int64_t steps_made = 0);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// What is not told stays empty. Errors: UsageFile when it cannot be written; UsageArgument for a
  /// name that is no column.
  void write(std::int64_t step, const Metrics& values);

 private:
  void append(int file, const std::string& name, const std::string& bytes) const;

  const std::string folder_;
  std::vector<std::string> columns_;
  std::string events_name_;
  int table_ = -1;
  int events_ = -1;
};

}  // namespace stagecraft
