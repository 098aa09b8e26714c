/// Judge turns a planner's candidate into a proposal: it simulates the step and adds up the memory.
///
/// It judges the candidates of all planners, so that their answers can be compared. Pure; one
/// thread at a time.
/// Units: seconds and bytes.
#pragma once

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/scheduler/planners/request/planner.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// Judge serves one request, which must outlive it.
class Judge {
 public:
  /// Errors: UsageArgument for costs that make no graph.
  explicit Judge(const PlanRequest& request);

  /// Returns the proposal of a candidate.
  /// Requires: the candidate's stages hold all operators, each once.
  /// Errors: ScheduleInvalid for a schedule that validate() refuses for these stages, with its
  /// report, because that is a fault of the planner; UsageArgument if the schedule cannot keep the
  /// request's orders.
  [[nodiscard]] PlanProposal propose(const Candidate& candidate);

 private:
  [[nodiscard]] Costs stage_costs(const Candidate& candidate, const Layout& layout);
  void place_costs(const Layout& layout, PlanProposal& made);
  void add_bytes(const Timeline& timeline, const Layout& layout, PlanProposal& made);
  [[nodiscard]] double seconds_of_rounds(const Timeline& timeline,
                                         const Layout& layout,
                                         const PlanProposal& made);

  const PlanRequest* request_;
  WorkGraphs graphs_;
  double bound_;
};

[[nodiscard]] inline PlanProposal judge(const PlanRequest& request, const Candidate& candidate) {
  return Judge(request).propose(candidate);
}

}  // namespace stagecraft
