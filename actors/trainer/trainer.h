/// Trainer trains a program by a schedule on a cluster. It is the public face of the runtime.
///
///   sc::Trainer trainer(program, "1f1b", sc::AdamW{.lr = 3e-4});
///   sc::StepFuture step = trainer.step(images, labels);
///   std::cout << step.get().mean_loss;
///
/// `fit` runs the loop over a loader. Other constructors take a cluster and a schedule of your own.
///
/// Thread: one at a time; the futures it returns may be read anywhere.
/// TR-1: nothing runs for a schedule that breaks a rule, or for a batch of a shape that the program
///       cannot have.
/// TR-2: a step that fails before its vote changes no weight, and the next may follow. A step that
///       fails later leaves weights undefined: every step, save and state_dict fails until load()
///       or recover().
/// TR-3: destroying a trainer cancels the steps in progress and takes a bounded time, beside that
///       of a call of on_column or decide in progress. A trainer that is never destroyed, or only
///       among static objects, does not harm the end of the process.
/// TR-4: a trainer that was moved from, and the copy of one in a child of fork(), fail every call
///       with that reason, and may be destroyed.
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

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/executor/step/local_batch.h"
#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/actors/trainer/fit.h"
#include "stagecraft/actors/trainer/state/loop_state.h"
#include "stagecraft/actors/trainer/steps/evaluation.h"
#include "stagecraft/actors/trainer/steps/step_future.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/metric.h"
#include "stagecraft/compiler/module/module_state.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/futures/transport/route.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// StateDict holds parameters, then buffers, each under every name that the module has for it.
using StateDict = std::vector<std::pair<std::string, at::Tensor>>;

// actors/trainer/state/checkpoint.h
struct Checkpoint;
class CheckpointReader;
class CheckpointSave;

/// SeedFrom selects the random numbers that follow after a checkpoint was loaded.
enum class SeedFrom {
  /// Those of TrainerOptions::seed, which must be the checkpoint's. If it is not set, those of the
  /// saved run; a warning says so if the trainer's were others.
  Same,
  Checkpoint,  ///< those of the saved run, as if it had never stopped
  Trainer,
};

/// RankStatus is the current activity of a rank.
struct RankStatus {
  Rank rank;
  bool answers = true;      ///< false: its worker has ended or is silent, and nothing else is known
  std::string instruction;  ///< empty between steps
  double seconds = 0.0;     ///< time in it so far
  std::vector<Rank>
      /// contains kDriver if an input has not come; empty: it waits for no rank
      waiting_for;
  std::vector<Route> routes;  ///< by rank: how its tensors get there
};

class Trainer {
 public:
  /// Copies the program's parameters to the ranks of the schedule, one worker to each.
  /// Errors: ScheduleInvalid with every violation on the grid; ClusterMember for a cluster with
  ///         fewer ranks than the schedule has; UsageArgument for options that make no sense.
  Trainer(const Cluster& cluster,
          Program program,
          Schedule schedule,
          Optimizer optimizer,
          TrainerOptions options = {});

  /// Runs a strategy: docs/strategies.md. Errors: likewise, with every fault of the strategy.
  Trainer(const Cluster& cluster,
          Program program,
          const Strategy& strategy,
          Optimizer optimizer,
          TrainerOptions options = {});

  /// Runs an execution, which was checked and lowered before (execution.h). Errors: likewise,
  /// without those of the schedule.
  Trainer(const Cluster& cluster,
          Execution execution,
          Optimizer optimizer,
          TrainerOptions options = {});

  /// Runs on ranks of its own, threads of this process, as many as the schedule needs.
  Trainer(Program program, Schedule schedule, Optimizer optimizer, TrainerOptions options = {});

  /// Takes a schedule by its name in the registry: "1f1b", "gpipe", "zb-h1", ... over the program's
  /// stages, "dag-1f1b" over their graph (schedule_for.h). Errors: also those of schedule_for.
  Trainer(Program program,
          std::string_view schedule,
          Optimizer optimizer,
          TrainerOptions options = {});
  Trainer(const Cluster& cluster,
          Program program,
          std::string_view schedule,
          Optimizer optimizer,
          TrainerOptions options = {});

  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Starts one optimizer update and returns. Waits first while `outstanding` steps are in
  /// progress. Copies the batch: it may be changed once this returns. A batch of another shape than
  /// the program's example is split as PT-1 says (compiler/shapes/parts.h). For a new shape of
  /// microbatches the program captures its module again, here, and every rank takes the shape on
  /// after the steps in progress.
  /// Errors: UsageArgument, CompileShape and others of parts_of, those of a rank that cannot take a
  /// shape on; the trainer is unchanged then. All other errors are in the future.
  [[nodiscard]] StepFuture step(const Batch& inputs, const Batch& labels);

  /// Runs a batch as step() does, but keeps its gradients for the update of the next step(). That
  /// update uses the weighted mean over all batches since the last one (PT-2), bit by bit as one
  /// batch of all their microbatches would. This result is the batch's; that of step() is the
  /// whole update's. A failure here fails step() too. Until then evaluate() uses the weights of the
  /// last update, and save() and state_dict() the state after it. If a batch fails before the vote,
  /// nothing changes and the update's batches are dropped; load() and recover() drop them too.
  StepFuture accumulate(const Batch& inputs, const Batch& labels);

  /// Trains on a batch that the ranks read where they run (local_source.h): this process sends no
  /// tensor of it.
  /// Errors: UsageArgument for an empty name or a number below 0. All other errors are in the
  /// future, also if a rank does not know the source or cannot read it; nothing has changed then.
  [[nodiscard]] StepFuture step(const LocalBatch& batch);
  StepFuture accumulate(const LocalBatch& batch);

  // For a model of one input and one label: trainer.step(input, label).
  template <std::same_as<at::Tensor> T>
  [[nodiscard]] StepFuture step(const T& input, const T& label) {
    return step(Batch{input}, Batch{label});
  }
  template <std::same_as<at::Tensor> T>
  StepFuture accumulate(const T& input, const T& label) {
    return accumulate(Batch{input}, Batch{label});
  }
  template <std::same_as<at::Tensor> T>
  [[nodiscard]] double evaluate(const T& input, const T& label) {
    return evaluate(Batch{input}, Batch{label});
  }

  /// Drops the accumulated batches, so that the next batch begins an update.
  void drop_accumulated();

  /// Trains on the batches of a loader, and waits. Takes a DataLoader of LibTorch, as
  /// make_data_loader returns it or as an object, or any range of {inputs, labels}, of pairs, of
  /// Example, or of a type that BatchOf converts. Errors: those of run_fit (fit.h).
  template <class Loader>
  FitResult fit(Loader&& loader, const FitOptions& options = {}) {
    internal::RangeSource source(internal::range_of(loader));
    return run_fit(*this, source, options);
  }

  /// Returns the model's outputs for the inputs, one tensor per tensor that its forward returns.
  /// The parts of the microbatches are concatenated in dim 0; a number gives one element for each
  /// of them. Runs forward only, in evaluation mode (dropout off, running statistics used), after
  /// the steps in progress, for any number of samples from 1 on. Changes nothing. The first call
  /// captures the module in evaluation mode, and so does every new shape.
  /// Errors: those of Evaluations::prediction (compiler/shapes/evaluations.h), and of a step.
  [[nodiscard]] std::vector<at::Tensor> predict(const Batch& inputs);

  /// Predicts for all batches of a loader, read once, as many in progress together as steps may be.
  /// Takes a loader like fit(), or a range of inputs, and ignores labels. The last batch may be
  /// smaller. Returns the outputs of all batches concatenated in the dimension of their rows.
  /// Errors: also UsageArgument for no batch, CompileShape for outputs that differ in another
  /// dimension; exceptions of the loader, unchanged.
  template <class Loader>
  requires(internal::IsLoader<Loader>)
      [[nodiscard]] std::vector<at::Tensor> predict(Loader&& loader) {
    internal::RangeSource source(internal::range_of(loader));
    return predict(static_cast<BatchSource&>(source));
  }
  /// Calls `each` with the outputs of each batch, in order, on this thread: memory holds those of
  /// the batches in progress alone, and batches may differ in shape. Errors: also those of `each`,
  /// unchanged.
  template <class Loader>
  requires(internal::IsLoader<Loader>) void predict(Loader&& loader, const OnOutputs& each) {
    internal::RangeSource source(internal::range_of(loader));
    predict(static_cast<BatchSource&>(source), each);
  }
  [[nodiscard]] std::vector<at::Tensor> predict(BatchSource& batches);
  void predict(BatchSource& batches, const OnOutputs& each);

  /// Returns mean loss and metrics over all samples of a loader's batches, read once. Takes a
  /// loader like fit(), or a list: {{inputs, labels}, ...}. Otherwise works like predict().
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
  /// Returns the mean loss of one batch.
  [[nodiscard]] double evaluate(const Batch& inputs, const Batch& labels);

  /// Sets the learning rate of the steps that are started from now on, instead of the rate of the
  /// options. None: use the options again. Groups follow it as they follow that of the options. A
  /// checkpoint does not hold it.
  /// Errors: UsageArgument for a number below 0 or not finite.
  void set_learning_rate(std::optional<double> rate);

  /// Sets the largest norm of the gradient likewise, instead of TrainerOptions::clip. Infinity:
  /// clips nothing. None: use the options again. The last batch of an update decides. A checkpoint
  /// does not hold it.
  /// Errors: UsageArgument for a number that is not above 0, and if the options have clip_value.
  void set_clip(std::optional<double> norm);

  /// Freezes the parameters of a group likewise, or lets them train, whatever its frozen_for says
  /// (PG-3, GU-1). None: use the options again. `group`: its ParameterGroup::match. A checkpoint
  /// does not hold it, but holds in how many updates a group was frozen, which its optimizer did
  /// not count. A step fails with UsageArgument if all parameters are frozen in it.
  /// Errors: UsageArgument for a group that the options do not have, and for one that is `frozen`
  /// in the options and shall train.
  void set_frozen(std::string_view group, std::optional<bool> frozen);

  /// Multiplies the rates of the steps that are started from now on, also that of
  /// set_learning_rate, by a factor. fit() uses it, and sets it to 1 when it ends. A checkpoint
  /// holds the factor of a plateau alone, in its LoopState.
  /// Errors: UsageArgument for a number below 0 or not finite.
  void scale_learning_rate(double factor);

  /// Tells the state of a loop after `steps` updates, also while these are in progress. A
  /// checkpoint of as many updates holds it. fit() does this.
  /// Errors: UsageArgument for a state that is impossible after so many.
  void set_loop_state(std::int64_t steps, LoopState state);
  /// Returns, after the steps in progress, the state of the loop after the updates made, of the
  /// checkpoint that was loaded or of set_loop_state. None if no loop has told it.
  [[nodiscard]] std::optional<LoopState> loop_state() const;

  /// Returns copies of the averaged gradients, before clipping, of all parameters that the last
  /// step has updated, by name in the model's order, after the steps in progress. Tied parameters
  /// and replicas appear once.
  /// Errors: UsageArgument without TrainerOptions::keep_gradients, and before the first step since
  /// the trainer was made or its state was replaced; WorkerLost if the weights are undefined.
  [[nodiscard]] StateDict gradients();

  /// Returns the updates made by steps that are over.
  [[nodiscard]] std::int64_t steps() const;

  /// Returns the seed of the random operators of the steps to come.
  [[nodiscard]] std::uint64_t seed() const;

  /// Returns copies of all parameters and buffers, after the steps in progress, also of those that
  /// no stage uses. As in PyTorch, a tied tensor appears under each of its names.
  [[nodiscard]] StateDict state_dict();

  /// Returns state_dict() with the averages of weights over the updates in place of the weights
  /// that train: in float32 for weights with masters. Another trainer of the program takes it
  /// (load_state_dict), to evaluate with it or to save it as a module.
  /// Errors: UsageArgument without TrainerOptions::average; those of state_dict.
  [[nodiscard]] StateDict averages();

  /// Returns the same as state_dict(), parameters and buffers apart.
  [[nodiscard]] ModuleState module_state();

  /// Replaces weights and buffers, after the steps in progress; optimizer state, step and seed
  /// stay. Averages begin again from the new weights. One name of a tied tensor is enough.
  /// Errors: UsageFile with every tensor that is missing, unknown, of another shape or type, or
  /// different under two names of one tensor: nothing has changed. Those of a rank that cannot take
  /// its part, which leaves weights undefined.
  void load_state_dict(const StateDict& state);

  /// Writes weights and buffers back into a module like the compiled one: itself, a holder, or a
  /// pointer to one. Copies values into the module's own tensors, so its ties, its gradients and
  /// the optimizers that hold its parameters stay valid.
  /// Errors: those of load_state_dict, with the module unchanged.
  template <class Given>
  void copy_to(Given&& module) {
    copy_into(internal::state_of_module(module));
  }

  /// Writes weights and buffers as torch::save(module, path) does (tensor_files/module_file.h), for
  /// torch::load and for PyTorch. Errors: those of write_module and state_dict.
  void save_module(const std::string& path);
  /// Calls load_state_dict with the contents of a file of torch::save(module, path) or save_module.
  void load_module(const std::string& path);

  /// Writes weights, optimizer state, buffers, step and seed, after the steps in progress.
  /// Errors: UsageFile; WorkerLost if the weights are undefined.
  void save(const std::string& path);
  /// Does the first half of it: the result has the state, read from the ranks, and a thread writes
  /// it beside its place, which `path_of` names for the state after so many updates. Its publish()
  /// does the second half, which waits for that thread and the disk, and steps can run meanwhile.
  [[nodiscard]] std::unique_ptr<CheckpointSave> begin_save(
      const std::function<std::string(std::int64_t)>& path_of);

  /// Returns the content that `save` writes: copies that no step changes.
  [[nodiscard]] Checkpoint checkpoint();

  /// Takes over the contents of a file of `save`, of any schedule and cut. Changes nothing if it
  /// throws before it begins to write. Errors: UsageFile, CheckpointFormat, CheckpointMismatch;
  /// those of a rank that cannot take its part, and of a file that can no longer be read, which
  /// leave weights undefined.
  void load(const std::string& path, SeedFrom seed_from = SeedFrom::Same);
  void load(const CheckpointReader& file, SeedFrom seed_from = SeedFrom::Same);
  void load(const Checkpoint& checkpoint, SeedFrom seed_from = SeedFrom::Same);

  /// Returns the texts of the ranks' choice of code (choice_text), as checkpoints keep them.
  [[nodiscard]] std::vector<std::string> processors() const;

  /// Takes all ranks back to the newest committed state of which every rank has a copy. With
  /// TrainerOptions::mirror a lost rank gets it from its keeper. In a new trainer, ranks have what
  /// those of another trainer of the same TrainerOptions::run have left, if they have outlived its
  /// driver; with none of these it stays as it is. Without mirrors, or if they have no complete
  /// state, it gets it from a rank that trains a copy of the same stage, unless copies share the
  /// optimizer's state. Call it after a lost rank was replaced, or when a failure left weights
  /// undefined, as often as needed. Returns the number of updates of that state, which steps()
  /// returns from then on. Continue with the batch of that number: usually the one that failed, or
  /// the one before it if its last copies had not arrived.
  /// Errors: UsageArgument without mirrors and copies; WorkerLost if neither has a complete state:
  /// a rank is lost with its keeper, the next rank, and with all copies of a stage; those of a rank
  /// that does not answer. Load a checkpoint then.
  std::int64_t recover();

  /// Returns whether the last recover() took the state from mirrors; else it took it from ranks
  /// that train copies of the same stages, or there was none.
  [[nodiscard]] bool recovered_from_mirrors() const;

  /// Returns the plan of a training step.
  [[nodiscard]] const Plan& plan() const;

  [[nodiscard]] const TrainerOptions& options() const;

  /// Returns the status of each rank. Answers even while a step hangs or a worker is gone.
  [[nodiscard]] std::vector<RankStatus> status();

  /// Returns who waits for whom now, in the words of the error of a late step: "rank 0 waits for
  /// 1B3 from rank 1, which has been in 1F3 for 4.1 s and waits for nobody". Empty between steps,
  /// and if all ranks answer and none is in one.
  /// Asks the ranks' agents, which answer while the ranks compute, and waits at most 2 s for a rank
  /// that is silent. Another thread may be waiting for the step meanwhile.
  [[nodiscard]] std::string waits();

 private:
  struct Impl;
  [[nodiscard]] Impl& impl() const;
  void copy_into(const ModuleState& module);

  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
