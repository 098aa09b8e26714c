/// TrainerOptions: how a trainer trains, and how long it waits.
///
/// Written by whoever makes a Trainer; the trainer checks them and hands this very record to its
/// crew, its driver and the executor of every rank.
/// OP-1: `visit_fields` is the list of what may travel to a rank: every option but
///       before_instruction, which is of its own process, and LearningRate::of_step (LR-1).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "stagecraft/actors/executor/learning_rate.h"
#include "stagecraft/actors/executor/parameter_groups.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

struct TrainerOptions {
  LearningRate learning_rate;
  std::vector<ParameterGroup> groups;  ///< what some parameters are trained otherwise by
  DecayOn decay_on = DecayOn::All;     ///< which parameters weight decay is for
  std::optional<double> clip;          ///< largest norm of the whole model's gradient
  /// Every step keeps its averaged gradients, for Trainer::gradients(); as much memory as these.
  bool keep_gradients = false;
  /// Of random operators; none: that of LibTorch's default CPU generator when the trainer is made,
  /// as torch::manual_seed set it. A checkpoint may bring another (SeedFrom), so ranks take it from
  /// the order of a step.
  std::optional<std::uint64_t> seed;
  int threads_per_worker = 1;  ///< of LibTorch; results are bit-equal at equal counts
  /// The most that the steps of one rank may hold of the machine's memory, in bytes: what is in use
  /// and what is cached for the next. Weights are beside it. None: what the machine has.
  std::optional<std::int64_t> memory_limit;
  bool record_timeline = false;  ///< every step says when each instruction of each rank ran
  bool mirror = false;           ///< each rank's state is kept in a neighbour's memory: recover()
  int outstanding = 2;           ///< steps under way before step() waits
  /// Deadlines: each above 0 and at most a year.
  /// Longest a step may take; its abort may take as long again, and a second at least.
  std::chrono::milliseconds step_deadline{std::chrono::minutes(5)};
  std::chrono::milliseconds state_deadline{
      std::chrono::minutes(5)};  ///< longest its start, save and load may take
  std::chrono::milliseconds end_deadline{std::chrono::seconds(20)};  ///< longest its end may take
  /// Called on a rank's thread before each of its instructions; may throw. For tests that make a
  /// rank fail.
  std::function<void(Rank, const Instruction&)> before_instruction;
};

/// A rank's longest wait for a peer. The driver's deadline comes first: it knows which rank holds
/// up the others.
[[nodiscard]] inline std::chrono::milliseconds patience(const TrainerOptions& options) {
  return 2 * options.step_deadline;
}

/// Errors: UsageArgument for options that no trainer can have.
void check_options(const TrainerOptions& options);

template <class V>
decltype(auto) visit_fields(TrainerOptions& m, V&& v) {
  return v(m.learning_rate,
           m.groups,
           m.decay_on,
           m.clip,
           m.keep_gradients,
           m.seed,
           m.threads_per_worker,
           m.memory_limit,
           m.record_timeline,
           m.mirror,
           m.outstanding,
           m.step_deadline,
           m.state_deadline,
           m.end_deadline);
}

}  // namespace stagecraft
