/// Trainer: trains a program by a schedule on a cluster. The public face of the runtime.
///
///   sc::Trainer trainer(cluster, program, schedule, sc::AdamW{.lr = 3e-4});
///   sc::StepFuture step = trainer.step({images}, {labels});
///   std::cout << step.get().mean_loss;
///
/// Thread: one at a time; the futures it returns may be read anywhere.
/// TR-1: nothing is dispatched for a schedule that breaks a rule, or a batch of a shape that cannot
///       be had.
/// TR-2: a step that fails before its vote changes no weight, and the next may follow. One that
///       fails later leaves weights undefined: every step, save and state_dict fails until load()
///       or recover().
/// TR-3: destroying a trainer cancels the steps under way and takes a bounded time. One that is
///       never destroyed, or only among static objects, does not harm the end of the process.
/// TR-4: a trainer that was moved from, and the copy that a child of fork() has of one, say so to
///       every call and may be destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/actors/executor/trainer_options.h"
#include "stagecraft/actors/step_future.h"
#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/check.h"
#include "stagecraft/compiler/module_state.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

/// Parameters, then buffers, each under every name that the module has for it.
using StateDict = std::vector<std::pair<std::string, at::Tensor>>;

struct Checkpoint;  // actors/checkpoint.h

/// Whose random numbers go on after a checkpoint was loaded.
enum class SeedFrom {
  Same,        ///< both must have the same
  Checkpoint,  ///< as if the run that saved it had never stopped
  Trainer,
};

/// What a rank is doing just now.
struct RankStatus {
  Rank rank;
  bool answers = true;      ///< false: its worker has ended or is silent, and nothing else is known
  std::string instruction;  ///< empty between steps
  double seconds = 0.0;     ///< for so long
  std::vector<Rank>
      /// kDriver among them for an input that has not come; empty: it waits for nobody
      waiting_for;
};

class Trainer {
 public:
  /// Copies the program's parameters to the ranks of the schedule, one worker to each.
  /// Errors: ScheduleInvalid with every violation on the grid; ClusterMember for a cluster with
  ///         fewer ranks than the schedule runs on; UsageArgument for options that make no sense.
  Trainer(const Cluster& cluster,
          Program program,
          Schedule schedule,
          Optimizer optimizer,
          TrainerOptions options = {});
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Starts one optimizer update and returns; waits first while `outstanding` steps are under way.
  /// The batch is copied: it may be changed as soon as this returns. One of another shape than the
  /// program's example is split as PT-1 says (compiler/parts.h); a shape of microbatches that is
  /// new has the program capture its module anew, here, and every rank take that on, behind the
  /// steps under way. Errors: UsageArgument, CompileShape and others of parts_of, those of a rank
  /// that cannot take a shape on; the trainer is as it was. All else is in the future.
  [[nodiscard]] StepFuture step(const Batch& inputs, const Batch& labels);

  /// Returns the mean loss of the batch, forward only, behind the steps under way; of any shape, as
  /// step(). Changes nothing.
  [[nodiscard]] double evaluate(const Batch& inputs, const Batch& labels);

  /// Updates made: of steps that are over.
  [[nodiscard]] std::int64_t steps() const;

  /// Of the random operators of the steps to come.
  [[nodiscard]] std::uint64_t seed() const;

  /// Copies of all parameters and buffers, after the steps under way; also of those no stage uses.
  /// As in PyTorch a tie is there under each of its names, all of which are one tensor.
  [[nodiscard]] StateDict state_dict();

  /// The same, parameters and buffers apart.
  [[nodiscard]] ModuleState module_state();

  /// Takes over weights and buffers, after the steps under way; optimizer state, step and seed stay
  /// as they are. Of a tie one name is enough.
  /// Errors: UsageFile with every tensor that is missing, unknown, of another shape or type, or
  ///         different under two names of one: nothing has changed. Those of a rank that cannot
  ///         take its part, which leaves weights undefined.
  void load_state_dict(const StateDict& state);

  /// Writes weights and buffers back into a module, one like that which was compiled: itself, a
  /// holder, or a pointer to one. Values are copied into the tensors that it has, so its ties, its
  /// gradients and the optimizers that hold its parameters stay. Errors: as load_state_dict, with
  /// the module as it was.
  template <class Given>
  void copy_to(Given&& module) {
    copy_into(internal::state_of_module(module));
  }

  /// Writes weights and buffers as torch::save(module, path) does (tensor_files/module_file.h), for
  /// torch::load and for PyTorch. Errors: those of write_module and state_dict.
  void save_module(const std::string& path);
  /// load_state_dict of what torch::save(module, path) or save_module wrote.
  void load_module(const std::string& path);

  /// Writes weights, optimizer state, buffers, step and seed, after the steps under way.
  /// Errors: UsageFile; WorkerLost when the weights are undefined.
  void save(const std::string& path);

  /// What `save` writes: copies, which no step changes any more.
  [[nodiscard]] Checkpoint checkpoint();

  /// Takes over what `save` wrote, from whatever schedule and cut; nothing is changed when it
  /// throws before it begins to write. Errors: UsageFile, CheckpointFormat, CheckpointMismatch;
  /// those of a rank that cannot take its part, which
  ///         leaves weights undefined.
  void load(const std::string& path, SeedFrom seed_from = SeedFrom::Same);

  /// With TrainerOptions::mirror, once a lost rank was replaced, or when weights are undefined
  /// after a failure: all ranks go back to the newest committed state of which every rank has a
  /// copy, the lost one from its keeper. Returns how many updates that state has, which steps()
  /// says from then on: go on with the batch of that number, as a rule the one that failed, or the
  /// one before it when its last copies were still on their way. As often as needed.
  /// Errors: UsageArgument without mirrors; WorkerLost when there is no such state, after the loss
  ///         of a rank and its keeper, the next one; those of a rank that does not answer. Then
  ///         load a checkpoint.
  std::int64_t recover();

  /// Of a training step.
  [[nodiscard]] const Plan& plan() const;

  /// By rank. Answers also while a step hangs or a worker is gone: that is when it is asked.
  [[nodiscard]] std::vector<RankStatus> status();

 private:
  struct Impl;
  [[nodiscard]] Impl& impl() const;
  void copy_into(const ModuleState& module);

  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
