/// PlanProposal: a candidate as the one simulator sees it: how long a step takes, what every device
/// holds, what binds, and how far that is from what no plan can pass.
///
///     const std::vector<PlanProposal> best_first = propose(request, "auto");
///
/// All planners are judged here, so that their answers can be compared. Pure; any thread. Units:
/// seconds and bytes.
/// PO-1: proposals that fit the devices' memory come before those that do not, faster ones first;
///       but of those within kAlike of the fastest, which no measurement tells apart, the one with
///       the fewest stages leads, then the one that holds least.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

/// By which part of a step proposals may differ and be equally good.
inline constexpr double kAlike = 0.01;

/// By which part a rank may hold more than is predicted of it: added before a plan is said to fit.
/// The most that was counted beyond is 17 %, between the halves of split backwards, of which a
/// profile knows one stage (bench/plan_memory; docs/planning.md has the figures).
inline constexpr double kMemoryMargin = 0.2;

/// What predictions may fill of so much memory.
[[nodiscard]] inline double usable(double memory) {
  return memory / (1 + kMemoryMargin);
}

/// What keeps a step from being shorter.
struct Bottleneck {
  enum class Kind : std::uint8_t { Device, Link, Update };
  Kind kind = Kind::Device;
  int from = 0;      ///< the device, or where the link begins
  int to = 0;        ///< of a link
  double share = 0;  ///< of the step
};

struct PlanProposal {
  Candidate candidate;
  int microbatches = 1;
  StageGraph graph;                ///< of the schedule's stages: the candidate's, once per replica
  std::vector<int> stage_of_cut;   ///< of each of those: its place in the candidate's cut
  std::vector<int> devices;        ///< likewise: its row of the schedule
  Costs costs;                     ///< likewise, as the simulator got them
  std::vector<EventOrder> orders;  ///< kept besides the schedule's own, as the request asks
  double step = 0;                 ///< with the update
  double update = 0;               ///< of the device that takes longest for it
  std::vector<Task> critical_path;
  std::vector<double> busy;   ///< by row: computing before the update
  std::vector<double> bytes;  ///< by row: most at once, as predicted
  std::vector<double> early;  ///< of it: by row, for values that come before they are taken
  bool fits = true;           ///< in the request's memory, with the margin
  Bottleneck binds;
  double bound = 0;  ///< no step of this batch on these devices is shorter

  /// By which part the step is longer than it could possibly be.
  [[nodiscard]] double gap() const { return bound > 0 ? step / bound - 1 : 0; }
  /// The row that holds most, and what it holds.
  [[nodiscard]] int fullest() const;
  [[nodiscard]] double most_bytes() const { return bytes[static_cast<std::size_t>(fullest())]; }
  /// Memory that devices must have, for the fullest of them: with the margin.
  [[nodiscard]] double needs() const;
};

/// Whether `one` is the better of the two, as PO-1 has it of all.
[[nodiscard]] bool leads(const PlanProposal& one, const PlanProposal& other);

/// No step of the batch is shorter on so many devices: by all there is to compute, and by the way
/// of one microbatch through the model.
[[nodiscard]] double lower_bound(const PlanRequest& request);

/// Judges the candidates of one request, which must outlive it.
class Judge {
 public:
  /// Errors: UsageArgument for costs that make no graph.
  explicit Judge(const PlanRequest& request);

  /// Requires: the candidate's stages are all operators, each once.
  /// Errors: ScheduleInvalid for a schedule that validate() refuses for these stages, with what it
  ///         says: a planner's fault; UsageArgument where it cannot keep the request's orders.
  [[nodiscard]] PlanProposal propose(const Candidate& candidate);

 private:
  [[nodiscard]] Costs stage_costs(const Candidate& candidate, const Layout& layout);

  const PlanRequest* request_;
  WorkGraphs graphs_;
  double bound_;
};

[[nodiscard]] inline PlanProposal judge(const PlanRequest& request, const Candidate& candidate) {
  return Judge(request).propose(candidate);
}

/// The proposals of one planner, or of all that apply ("auto"), best first (PO-1).
/// Errors: UsageArgument for an unknown planner, one that cannot answer the request (with why),
///         orders that no plan can keep, and costs that make no graph; PlanInfeasible where no
///         planner finds what fits, with each one's reason.
[[nodiscard]] std::vector<PlanProposal> propose(const PlanRequest& request,
                                                std::string_view planner);

/// In words: "device 2 computes 93 % of the step".
[[nodiscard]] std::string to_string(const Bottleneck& bottleneck);

}  // namespace stagecraft
