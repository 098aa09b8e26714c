/// ReaderWatch decides whether a run continues when nobody can read its output, and reports that
/// once on standard error.
///
/// The run asks it between its steps; single-threaded. Keeps TN-3.
#pragma once

#include <cstdint>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/report/run_output.h"

namespace stagecraft::tools {

class ReaderWatch {
 public:
  /// All arguments must outlive it.
  ReaderWatch(const TrainOptions& options, const RunOutput& output, Console& console)
      : options_(options), output_(output), console_(console) {}

  /// Returns whether to make another step after this one.
  [[nodiscard]] bool worth_going_on(std::int64_t step);

  /// Reports, unless it was reported before, that printed text did not arrive. `step`: the last one
  /// made; `more`: more steps follow.
  void report(std::int64_t step, bool more);

 private:
  const TrainOptions& options_;
  const RunOutput& output_;
  Console& console_;
  bool reported_ = false;
};

}  // namespace stagecraft::tools
