/// Trainer: trains a program by a schedule on a cluster. The public face of the runtime.
///
///   sc::Trainer trainer(program, "1f1b", sc::AdamW{.lr = 3e-4});
///   sc::StepFuture step = trainer.step({images}, {labels});
///   std::cout << step.get().mean_loss;
///
/// `fit` makes the loop over a loader; a cluster and a schedule of one's own say more.
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

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/evaluation.h"
#include "stagecraft/actors/executor/local_batch.h"
#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/actors/executor/trainer_options.h"
#include "stagecraft/actors/fit.h"
#include "stagecraft/actors/step_future.h"
#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/check.h"
#include "stagecraft/compiler/metric.h"
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

  /// The same on ranks of its own, threads of this process, as many as the schedule needs.
  Trainer(Program program, Schedule schedule, Optimizer optimizer, TrainerOptions options = {});

  /// By a name of the registry: "1f1b", "gpipe", "zb-h1", ... over the program's stages, "dag-1f1b"
  /// over their graph (schedule_for.h). Errors: those of schedule_for, too.
  Trainer(Program program,
          std::string_view schedule,
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

  /// As step(), but the gradients are kept, for the update that the next step() makes: of the mean
  /// over the samples of all batches since the last one (PT-2), bit by bit what one batch of all
  /// their microbatches gives. The result is this batch's, that of step() the whole update's; what
  /// fails here fails there too. Until then evaluate() sees the weights of the last update, save()
  /// and state_dict() the state behind it. When a batch fails before the vote, nothing is changed
  /// and the update's batches are dropped; load() and recover() drop them too.
  StepFuture accumulate(const Batch& inputs, const Batch& labels);

  /// The same on a batch that the ranks read where they run (local_source.h): no tensor of it is
  /// sent from here. Errors: UsageArgument for no name or a number below 0. All else is in the
  /// future, also a rank that does not know the source or cannot read from it: then nothing is
  /// changed.
  [[nodiscard]] StepFuture step(const LocalBatch& batch);
  StepFuture accumulate(const LocalBatch& batch);

  /// The next batch begins an update, whatever was accumulated.
  void drop_accumulated();

  /// Trains on the batches of a loader, and waits: a DataLoader of LibTorch, as make_data_loader
  /// returns it or as itself, or any range of {inputs, labels}, of pairs, of Example, or of a type
  /// told by BatchOf. Errors: those of run_fit (fit.h).
  template <class Loader>
  FitResult fit(Loader&& loader, const FitOptions& options = {}) {
    internal::RangeSource source(internal::range_of(loader));
    return run_fit(*this, source, options);
  }

  /// Returns what the model makes of the inputs, one tensor per tensor that its forward returns:
  /// what the microbatches made one after the other in dim 0, of a number one element each. Forward
  /// only, in evaluation mode (dropout off, running statistics used), behind the steps under way;
  /// of any number of samples from 1 on. Changes nothing. The module is captured in evaluation mode
  /// when this is called first, and for every shape that is new.
  /// Errors: those of Evaluations::prediction (compiler/evaluations.h), and of a step.
  [[nodiscard]] std::vector<at::Tensor> predict(const Batch& inputs);

  /// Returns mean loss and metrics over all samples of a loader's batches, once through; a loader
  /// as fit() takes it, or a list: {{inputs, labels}, ...}. Otherwise as predict().
  template <class Loader>
  requires(!std::convertible_to<Loader, const Batch&>) [[nodiscard]] Evaluation
      evaluate(Loader&& loader, const std::vector<Metric>& metrics = {}) {
    internal::RangeSource source(internal::range_of(loader));
    return evaluate(static_cast<BatchSource&>(source), metrics);
  }
  [[nodiscard]] Evaluation evaluate(const std::vector<LabeledBatch>& batches,
                                    const std::vector<Metric>& metrics = {}) {
    internal::RangeSource source(batches);
    return evaluate(static_cast<BatchSource&>(source), metrics);
  }
  [[nodiscard]] Evaluation evaluate(BatchSource& batches, const std::vector<Metric>& metrics);
  /// Likewise of one batch, its mean loss alone.
  [[nodiscard]] double evaluate(const Batch& inputs, const Batch& labels);

  /// Steps that are asked for from now on have this learning rate, whatever the options say; none:
  /// what they say, again. Groups follow it as they follow the options'. No part of a checkpoint.
  /// Errors: UsageArgument for a number below 0 or not finite.
  void set_learning_rate(std::optional<double> rate);

  /// Copies of the averaged gradients, before clipping, of all parameters that the last step has
  /// updated, by name in the model's order, after the steps under way; of tied parameters and of
  /// replicas once.
  /// Errors: UsageArgument without TrainerOptions::keep_gradients, and before a step was made since
  ///         the trainer was made or its state was replaced; WorkerLost when the weights are
  ///         undefined.
  [[nodiscard]] StateDict gradients();

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
  void load(const Checkpoint& checkpoint, SeedFrom seed_from = SeedFrom::Same);

  /// By what the ranks choose the code that they compute with, as checkpoints keep it.
  [[nodiscard]] std::vector<std::string> processors() const;

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

  [[nodiscard]] const TrainerOptions& options() const;

  /// By rank. Answers also while a step hangs or a worker is gone: that is when it is asked.
  [[nodiscard]] std::vector<RankStatus> status();

 private:
  struct Impl;
  [[nodiscard]] Impl& impl() const;
  void copy_into(const ModuleState& module);

  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
