/// CutCandidates collects the results of a planner that cuts the row of operators.
///
/// It keeps the best cut of every schedule. If none fits the memory, it knows how many bytes the
/// nearest one lacks. A value; one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/pfeife/cut_beam.h"
#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

class CutCandidates {
 public:
  /// Adds a result. `cost`: that of the cut's schedule.
  void add(CutCost& cost, const ScoredCut& found, std::string schedule_name);

  /// Returns the candidates, the shortest step first; of equal ones the one with fewer stages, then
  /// the earlier one. Returns nothing if none was added.
  /// Errors: PlanInfeasible if none fits, with the tightest device and the bytes that it lacks.
  [[nodiscard]] std::vector<Candidate> take(double memory) &&;

 private:
  struct Found {
    double time = 0;
    Candidate candidate;
  };
  /// Tightest is the result that came nearest to fitting.
  struct Tightest {
    double excess = 0;
    CutCost::Peak peak;
    std::string schedule_name;
  };

  std::vector<Found> found_;
  std::optional<Tightest> tightest_;
};

}  // namespace stagecraft
