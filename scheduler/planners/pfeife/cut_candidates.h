/// CutCandidates: what a planner that cuts the row of operators has found so far.
///
/// Collects the best cut of every schedule, and knows what the nearest lacks where none fits the
/// memory. A value; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/pfeife/cut_beam.h"
#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

class CutCandidates {
 public:
  /// `cost`: of the cut's schedule.
  void add(CutCost& cost, const ScoredCut& found, std::string schedule_name);

  /// The shortest step first; of equal ones that with fewer stages, then the earlier one.
  /// Errors: PlanInfeasible where none fits, with the tightest device and the bytes it lacks.
  [[nodiscard]] std::vector<Candidate> take(double memory) &&;

 private:
  struct Found {
    double time = 0;
    Candidate candidate;
  };
  /// What was nearest to fitting.
  struct Tightest {
    double excess = 0;
    CutCost::Peak peak;
    std::string schedule_name;
  };

  std::vector<Found> found_;
  std::optional<Tightest> tightest_;
};

}  // namespace stagecraft
