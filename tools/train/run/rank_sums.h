/// RankSums adds up how each rank spent the time and memory of all steps of a run.
///
/// The run feeds it with every step; single-threaded.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tools/train/job/rank_memory.h"
#include "stagecraft/tools/train/report/rank_table.h"

namespace stagecraft::tools {

class RankSums {
 public:
  /// `bill`: by rank; empty if steps are not compared with it.
  explicit RankSums(const Layout& layout, const std::vector<RankMemory>& bill = {});

  void add(const StepResult& result);

  [[nodiscard]] const std::vector<RankTotals>& totals() const { return totals_; }
  /// Returns the stages of each rank, as text.
  [[nodiscard]] std::vector<std::string> stages() const;
  /// Returns "stage 2" or "stages 0,3": those of the rank that computed longest in a step.
  [[nodiscard]] std::string slowest(const StepResult& result) const;

 private:
  std::vector<RankTotals> totals_;
};

}  // namespace stagecraft::tools
