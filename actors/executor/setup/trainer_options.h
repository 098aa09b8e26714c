/// TrainerOptions says how a trainer trains, and how long it waits.
///
/// The maker of a Trainer writes it. The trainer checks the options and passes this same record to
/// its crew, its driver and the executor of every rank.
/// OP-1: `visit_fields` lists what may travel to a rank: every option but before_instruction,
///       on_column, decide and loss_weight, which belong to their own process, and
///       LearningRate::of_step (LR-1).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/optimizer/learning_rate.h"
#include "stagecraft/actors/executor/optimizer/parameter_groups.h"
#include "stagecraft/actors/executor/step/dispatched_column.h"
#include "stagecraft/actors/executor/step/loss_scale.h"
#include "stagecraft/actors/executor/step/loss_weight.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/instruction.h"
#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// The way of tensors between accelerators of different processes. Nccl: by NCCL where both ranks
/// have it and devices of their own, else like Host: through the memory of the host and the
/// transport.
enum class DeviceTransport : std::uint8_t { Nccl, Host };

/// The order of sums over accelerators of different processes. ByRank: that of the ranks, the same
/// on every run and as on the CPU. Nccl: NCCL's own, which depends on the machines; it is used
/// where NCCL connects the ranks, and is the same on all of them.
enum class DeviceReduce : std::uint8_t { ByRank, Nccl };

/// Dispatch says who decides when a task of a training step begins.
enum class Dispatch : std::uint8_t {
  Plan,     ///< each rank follows its list, and waits for data alone
  PerTask,  ///< the driver releases the tasks of one column of the schedule after the other
  Decided,  ///< likewise, and TrainerOptions::decide names the tasks of each column
};

struct TrainerOptions {
  LearningRate learning_rate;
  std::vector<ParameterGroup> groups;  ///< parameters that train differently
  DecayOn decay_on = DecayOn::All;     ///< parameters with weight decay
  std::optional<double> clip;          ///< largest norm of the whole model's gradient
  std::optional<double> clip_value;    ///< instead: largest size of an element of the gradient
  /// Decay of the average of each weight, which begins as the weight and becomes, after an update,
  /// average * itself + (1 - average) * weight: Trainer::averages(). None: there are no averages.
  std::optional<double> average;
  /// If true, parameters of half types (bfloat16, float16) have masters: copies in float32 that the
  /// optimizer changes, with state in float32, and that are rounded to the parameters
  /// (master_weights.h). They begin as the parameters.
  bool master_weights = false;
  /// For float16, whose small gradients would become zero. None: losses are not scaled.
  std::optional<LossScaling> loss_scaling;
  /// If true, every step keeps its averaged gradients for Trainer::gradients(); they take as much
  /// memory as the gradients.
  bool keep_gradients = false;
  /// Seed of random operators. None: the seed of LibTorch's default CPU generator when the trainer
  /// is made, as torch::manual_seed set it. A checkpoint may bring another (SeedFrom), so ranks
  /// take it from the order of a step.
  std::optional<std::uint64_t> seed;
  int threads_per_worker = 1;  ///< of LibTorch; results are bit-equal at equal counts
  /// Device of every rank: "cpu", or the type of an accelerator ("cuda"), whose devices ranks take
  /// in turn, or one of them for all ("cuda:1").
  std::string device = "cpu";
  DeviceTransport device_transport = DeviceTransport::Nccl;
  DeviceReduce device_reduce = DeviceReduce::ByRank;
  /// The most memory of the machine, in bytes, that the steps of one rank may hold, used and cached
  /// for the next step. Weights are not part of it. None: the machine's memory.
  std::optional<std::int64_t> memory_limit;
  /// PerTask is for looking at steps and for comparisons: it has the same bits, and costs a message
  /// to the rank and one back for each task, and a wait of all for each column. So does Decided,
  /// which has the bits of its order.
  Dispatch dispatch = Dispatch::Plan;
  bool tells_values = false;     ///< set by the trainer if it has on_column or decide
  bool column_tensors = false;   ///< those get the values themselves too (DispatchedTask::tensors)
  bool record_timeline = false;  ///< every step reports when each instruction of each rank ran
  bool mirror = false;           ///< a neighbor keeps each rank's state in memory: recover()
  /// The name of this run, which no other has, for workers that outlive their driver (`stagecraft
  /// worker --outlive`): their ranks leave copies of its states, and those of the next trainer of
  /// this name take them, for its recover(). Empty: they leave none. Needs `mirror`. No copies are
  /// left of a model with parameters or buffers that no stage uses, which only the driver has.
  std::string run;
  int outstanding = 2;  ///< steps in progress before step() waits
  /// Deadlines: each above 0 and at most a year.
  /// Longest time of a step. Its abort may take as long again, and at least a second.
  std::chrono::milliseconds step_deadline{std::chrono::minutes(5)};
  std::chrono::milliseconds state_deadline{
      std::chrono::minutes(5)};  ///< longest time of its start, save and load
  std::chrono::milliseconds end_deadline{std::chrono::seconds(20)};  ///< longest time of its end
  /// A function that is called on a rank's thread before each of its instructions; may throw. Tests
  /// use it to let a rank fail.
  std::function<void(Rank, const Instruction&)> before_instruction;
  /// PerTask, Decided: a function that gets each column when its tasks have run, with the shapes
  /// and norms of what they made, before the next column or the update begins. Called on a thread
  /// of the trainer; may throw, which fails the step. Empty: nobody looks.
  std::function<void(const DispatchedColumn&)> on_column;
  /// Decided: a function that names the tasks of the next column; a rank runs several in turn. It
  /// gets the columns so far, as an array, and what the last one has made (without tasks before the
  /// first). The tasks, and their rows, are those of the trainer's schedule; each column is proved
  /// before its tasks are released (decided_order.h). Called and failing like on_column.
  std::function<std::vector<Task>(const Schedule& so_far, const DispatchedColumn& last)> decide;
  /// By how much a microbatch's loss counts, in steps and evaluations; metrics count by samples.
  /// None: by its samples.
  LossWeight loss_weight;
};

/// Returns a rank's longest wait for a peer. The driver's deadline comes first, because the driver
/// knows which rank holds up the others.
[[nodiscard]] inline std::chrono::milliseconds patience(const TrainerOptions& options) {
  return 2 * options.step_deadline;
}

/// Checks the largest norm of the gradient for the steps to come. `clip_value`: of the options.
/// Errors: UsageArgument for a number that is not above 0, and beside a clip_value.
void check_clip(double norm, const std::optional<double>& clip_value);

/// Checks the options. Errors: UsageArgument for options that no trainer can have.
void check_options(const TrainerOptions& options);

template <class V>
decltype(auto) visit_fields(TrainerOptions& m, V&& v) {
  return v(m.learning_rate,
           m.groups,
           m.decay_on,
           m.clip,
           m.clip_value,
           m.average,
           m.master_weights,
           m.loss_scaling,
           m.keep_gradients,
           m.seed,
           m.threads_per_worker,
           m.device,
           m.device_transport,
           m.device_reduce,
           m.memory_limit,
           m.dispatch,
           m.tells_values,
           m.column_tensors,
           m.record_timeline,
           m.mirror,
           m.run,
           m.outstanding,
           m.step_deadline,
           m.state_deadline,
           m.end_deadline);
}

}  // namespace stagecraft
