/// MetricsWriter writes the numbers of a run, step by step, to a folder: a table (metrics.csv) and
/// a file that TensorBoard reads.
///
///   sc::MetricsWriter metrics("runs/first", {"loss", "accuracy"}, trainer.steps());
///   metrics.write(step, {{"loss", 0.31}, {"accuracy", 0.92}});
///
/// Used by `stagecraft train --metrics` and by programs; step_metrics.h collects the numbers of a
/// step. Thread: one at a time.
/// MW-1: write() puts each step on file at once: a process that is killed loses at most the last
///       step.
/// MW-2: a run that continues after some steps keeps the rows of those steps and drops later rows,
///       because it makes those steps again. No step appears twice.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stagecraft {

using Metrics = std::vector<std::pair<std::string, double>>;

class MetricsWriter {
 public:
  /// Makes the folder if it does not exist. `columns`: the values that steps may have; an existing
  /// table keeps its columns and gets the missing ones. `steps_made`: the steps made before this
  /// run.
  /// Errors: UsageFile for a folder that cannot be written to, or that has another kind of
  /// metrics.csv; UsageArgument for names that a table cannot have.
  MetricsWriter(const std::string& folder,
                const std::vector<std::string>& columns,
                std::int64_t steps_made = 0);
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  MetricsWriter& operator=(const MetricsWriter&) = delete;

  /// Writes the values of a step; columns without a value stay empty. Errors: UsageFile if a file
  /// cannot be written; UsageArgument for a name that is no column.
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
