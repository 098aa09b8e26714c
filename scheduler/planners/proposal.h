/// PlanProposal is a candidate judged by the simulator: the time of a step, the bytes of every
/// device, the limit of the step, and the distance to a bound that no plan can pass.
///
/// Judge (judge.h) makes it; propose() returns the best first. A value; any thread. Units: seconds
/// and bytes.
/// PO-1: proposals that fit the devices' memory come before those that do not, faster ones first.
///       Proposals within kAlike of the fastest cannot be distinguished by measurement; among them
///       the one with the fewest stages leads, then the one that holds least.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// The relative difference of steps up to which proposals are equally good.
inline constexpr double kAlike = 0.01;

/// The margin: a plan fits if its prediction times (1 + kMemoryMargin) fits. Ranks hold at most 1.2
/// % more than predicted (docs/planning.md). The rest is for memory that no prediction contains,
/// for example memory that libraries keep for themselves.
inline constexpr double kMemoryMargin = 0.2;

/// Returns the part of `memory` that predictions may fill.
[[nodiscard]] inline double usable(double memory) {
  return memory / (1 + kMemoryMargin);
}

/// Bottleneck names the limit of a step.
struct Bottleneck {
  enum class Kind : std::uint8_t { Device, Link, Update, Rounds };
  Kind kind = Kind::Device;
  int from = 0;      ///< the device, or the start of the link
  int to = 0;        ///< the end of the link
  double share = 0;  ///< of the step
};

struct PlanProposal {
  Candidate candidate;
  int microbatches = 1;           ///< of the step, over all copies of the pipeline
  StageGraph graph;               ///< of the schedule's stages: the candidate's, once per replica
  std::vector<int> stage_of_cut;  ///< by stage of `graph`: its place in the candidate's cut
  std::vector<int> devices;       ///< by stage of `graph`: its row of the schedule
  std::vector<std::vector<int>> devices_of_row;  ///< by row: the devices that it stands for
  /// By stage of `graph`, on its own device, as given to the simulator.
  Costs costs;
  std::vector<EventOrder> orders;  ///< kept in addition to the schedule's own, as requested
  double step = 0;                 ///< with the update
  double update = 0;               ///< of the device that takes longest for it
  double rounds = 0;  ///< of sums and gathers of shared copies, beyond the tasks that can hide them
  std::vector<Task> critical_path;
  std::vector<double> busy;    ///< by row: computing before the update
  std::vector<double> bytes;   ///< by row: predicted peak of each of its devices
  std::vector<double> early;   ///< by row: the part of `bytes` for values that arrive early
  std::vector<double> memory;  ///< by row: bytes that each of its devices has; may be infinite
  bool fits = true;            ///< every row in its memory, with the margin
  Bottleneck binds;
  double bound = 0;  ///< no step of this batch on these devices is shorter

  /// Returns the relative gap between the step and the bound.
  [[nodiscard]] double gap() const { return bound > 0 ? step / bound - 1 : 0; }
  /// Returns the row that holds the most bytes.
  [[nodiscard]] int fullest() const;
  /// Returns the first device of a row, or its number if it has no task.
  [[nodiscard]] int first_device(int row) const;
  [[nodiscard]] double most_bytes() const { return bytes[static_cast<std::size_t>(fullest())]; }
  /// Returns the memory that each device needs so that the fullest one fits, margin included.
  [[nodiscard]] double needs() const;
  /// Returns the bytes that the devices of a row lack, margin included; negative: left.
  [[nodiscard]] double lacks_on(std::size_t row) const {
    return bytes[row] * (1 + kMemoryMargin) - memory[row];
  }
  /// Returns the row whose devices lack the most bytes, or have the fewest left.
  [[nodiscard]] int tightest() const;
  /// Returns the bytes that its devices lack, margin included; not above 0 if all rows fit.
  [[nodiscard]] double lacks() const;
};

/// Returns whether `one` comes before `other` by PO-1.
[[nodiscard]] bool leads(const PlanProposal& one, const PlanProposal& other);

/// Returns a sentence: "device 2 computes 93 % of the step".
[[nodiscard]] std::string to_string(const Bottleneck& bottleneck);

}  // namespace stagecraft
