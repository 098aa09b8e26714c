#include "stagecraft/actors/trainer/trainer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/crew/known_programs.h"
#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/trainer/checked_options.h"
#include "stagecraft/actors/trainer/launch_crew.h"
#include "stagecraft/actors/trainer/rank_statuses.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/state/recovery.h"
#include "stagecraft/actors/trainer/state/trainer_checkpoint.h"
#include "stagecraft/actors/trainer/state/trainer_state.h"
#include "stagecraft/actors/trainer/state/unused_state.h"
#include "stagecraft/actors/trainer/steps/callers_thread.h"
#include "stagecraft/actors/trainer/steps/evaluator.h"
#include "stagecraft/actors/trainer/steps/step_entry.h"
#include "stagecraft/actors/trainer/steps/updates.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/plan/own_slots.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/tensor_files/module_file.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/scheduler/builders/schedule_for.h"

namespace stagecraft {
namespace {

/// Returns a number of ranks that is enough for a schedule that may be wrong. A rank without a task
/// costs nothing.
int most_ranks(const Schedule& schedule) {
  std::size_t ranks = 0;
  for (const std::vector<Rank>& row : schedule.headers().places) {
    ranks += row.size();
  }
  return static_cast<int>(std::max({std::size_t{1}, schedule.rows().size(), ranks}));
}

/// Returns how many states of a loop are kept: those after the steps in progress, the committed
/// one, and those before it to which recover() may go back. With mirrors that is usually one step,
/// but one more for every step during which a copy is slow (MI-2). A state has a few KiB, so many
/// are kept.
std::size_t loop_states_of(const TrainerOptions& options) {
  constexpr std::size_t kLateCopies = 256;
  return static_cast<std::size_t>(options.outstanding) + 1 + (options.mirror ? kLateCopies : 0);
}

/// Returns the execution with the plan that this dispatch needs.
Execution in_form_for(Dispatch dispatch, Execution execution) {
  if (dispatch == Dispatch::Decided) {
    execution.plan = std::make_shared<const Plan>(with_own_slots(*execution.plan));
  }
  return execution;
}

/// Returns what packs the facts of a state for a trainer that follows this one (MR-4), if that can
/// have the state.
StateFacts state_facts(const TrainerOptions& options,
                       const std::shared_ptr<const LoopStates>& loops,
                       const UnusedState& unused) {
  if (options.run.empty() || !unused.tensors().empty()) {
    return nullptr;
  }
  return [loops, scaling = options.loss_scaling](std::int64_t updates,
                                                 std::uint64_t seed,
                                                 const LossScale& scale,
                                                 const FrozenUpdates& frozen) {
    return packed_facts({.step = updates,
                         .seed = seed,
                         .loss_scale = kept_scale(scaling, scale),
                         .loop = loops->at(updates),
                         .frozen = frozen});
  };
}

UnusedState unused_of(const Program& program) {
  const OnCallersThread scope;
  return UnusedState(program.compiled());
}

}  // namespace

struct Trainer::Impl {
  HomeProcess home;
  std::atomic<bool> armed{false};  ///< process_end was told of the trainer
  Recovery recovery;               ///< the last one
  const Cluster cluster;
  const Execution execution;
  const Program& program = execution.sized;
  const Optimizer optimizer;
  const TrainerOptions options;
  UnusedState unused = unused_of(program);
  const std::shared_ptr<LoopStates> loops = std::make_shared<LoopStates>(loop_states_of(options));
  const std::shared_ptr<StepLedger> ledger =
      std::make_shared<StepLedger>(options.loss_scaling,
                                   GroupUpdates(options.groups, program.parameter_names()),
                                   state_facts(options, loops, unused));
  KnownPrograms programs{program, execution.plan, execution.strategy, execution.layout};
  std::unique_ptr<Crew> crew;
  StepEntry entry;
  Updates updates;
  Evaluator evaluator;
  TrainerState state;

  Impl(const Cluster& c, Execution e, Optimizer o, TrainerOptions t)
      : cluster(c),
        execution(std::move(e)),
        optimizer(std::move(o)),
        options(checked_options(std::move(t), optimizer, execution, cluster.ranks())),
        crew(launch_crew(cluster, ledger, execution, optimizer, options)),
        entry(*crew,
              *ledger,
              programs,
              StepKeeper(cluster.actors(),
                         crew->plan_id(),
                         program.compiled(),
                         *execution.plan,
                         longest_wait_for_values(options)),
              unused.tensors(),
              options.device,
              options.outstanding,
              options.seed.value_or(default_seed())),
        updates(entry, program, options.loss_weight),
        evaluator(entry, *crew, options, program, execution.program.evaluations()),
        state(program, options, *crew, *ledger, programs, unused, [this](std::int64_t after) {
          return ledger->facts(after, entry.seed());
        }) {}

  /// Returns the processors as CheckpointFacts has them.
  [[nodiscard]] std::vector<std::string> processors() const {
    const std::vector<WorkerPlace> workers = cluster.workers();
    std::set<std::string> all;
    for (const RankPlan& rank : execution.plan->ranks) {
      const bool here = execution.has_driver_row && &rank == &execution.plan->ranks.back();
      const ProcessorFacts& processor =
          here ? processor_of_this_process() : workers[rank.rank.index()].processor;
      if (!processor.capability.empty()) {  // empty: the rank has no worker now
        all.insert(choice_text(processor));
      }
    }
    return {all.begin(), all.end()};
  }

  /// Ends the steps in progress, so that another state can follow. Workers that replaced others get
  /// their setup.
  void stop_training() {
    ledger->drain();
    updates.begin();
    crew->take_replacements();
  }

  [[nodiscard]] RunFacts facts(std::optional<std::uint64_t> seed) const {
    return {.seed = seed,
            .optimizer = std::string(optimizer_name(optimizer)),
            .processors = processors(),
            .loops = loops.get()};
  }

  void load(const CheckpointHeader& header, const StateSource& source, SeedFrom seed_from) {
    // A Checkpoint of the caller may have anything.
    if (header.loss_scale && !is_possible(*header.loss_scale, header.step)) {
      throw Error(Errc::CheckpointFormat,
                  fmt::format("the checkpoint has a scale of losses that no run of {} steps can "
                              "have: leave Checkpoint::loss_scale as it was saved, or empty",
                              header.step));
    }
    if (header.loop && !is_possible(*header.loop, header.step)) {
      throw Error(Errc::CheckpointFormat,
                  fmt::format("the checkpoint has a state of a loop that no loop of {} steps can "
                              "have: leave Checkpoint::loop as it was saved, or empty",
                              header.step));
    }
    if (header.frozen && !is_possible(*header.frozen, weight_changes(header))) {
      throw Error(Errc::CheckpointFormat,
                  fmt::format("the checkpoint has groups that were frozen in more updates than its "
                              "{}: leave Checkpoint::frozen as it was saved, or empty",
                              weight_changes(header)));
    }
    const OnCallersThread scope;
    stop_training();
    const bool same_seed = seed_from == SeedFrom::Same && options.seed;
    restore(
        header, source, state, facts(same_seed ? std::optional(entry.seed()) : std::nullopt), [&] {
          loops->replace(header.step, header.loop);
          take_seed(header.seed, seed_from);
        });
  }

  void take_seed(std::uint64_t seed, SeedFrom from) {
    if (from != SeedFrom::Trainer && seed != entry.seed()) {
      if (from == SeedFrom::Same) {  // nobody named either seed
        log(Level::Warning,
            "the checkpoint's seed is used, since TrainerOptions::seed is not set",
            {{"seed", seed}, {"instead_of", entry.seed()}});
      }
      entry.set_seed(seed);
    }
  }

  void load_file(const CheckpointReader& file, SeedFrom seed_from) {
    load(
        file.header(), [&](const std::string& name) { return read_tensor(file, name); }, seed_from);
  }

  ModuleState module_state() {
    const OnCallersThread scope;
    return state.read_module();
  }

  void load_module_state(const std::string& from, const ModuleState& found) {
    const OnCallersThread scope;
    state.replace_module(from, found);
  }

  std::int64_t recover() {
    const StateCopies copies{.in_mirrors = options.mirror,
                             .of_stages = any_stage_has_copies(*execution.plan)};
    if (!copies.in_mirrors && !copies.of_stages) {
      throw Error(Errc::UsageArgument,
                  "recover() needs copies of committed states, this trainer keeps none, and no "
                  "stage is on two ranks: load a checkpoint now, and set TrainerOptions::mirror "
                  "for the next trainer");
    }
    stop_training();
    recovery = stagecraft::recover(*crew, state, copies);
    if (const auto& left = recovery.facts) {
      entry.set_seed(left->seed);
      loops->replace(recovery.updates, left->loop);
    }
    return recovery.updates;
  }
};

Trainer::Trainer(const Cluster& cluster,
                 Execution execution,
                 Optimizer optimizer,
                 TrainerOptions options)
    : impl_(std::make_unique<Impl>(cluster,
                                   in_form_for(options.dispatch, std::move(execution)),
                                   std::move(optimizer),
                                   std::move(options))) {}

Trainer::Trainer(const Cluster& cluster,
                 Program program,
                 Schedule schedule,
                 Optimizer optimizer,
                 TrainerOptions options)
    : Trainer(
          cluster, make_execution(program, schedule), std::move(optimizer), std::move(options)) {}

Trainer::Trainer(const Cluster& cluster,
                 Program program,
                 const Strategy& strategy,
                 Optimizer optimizer,
                 TrainerOptions options)
    : Trainer(
          cluster, make_execution(program, strategy), std::move(optimizer), std::move(options)) {}

Trainer::Trainer(Program program, Schedule schedule, Optimizer optimizer, TrainerOptions options)
    : Trainer(
          Cluster::local(most_ranks(schedule)), program, schedule, optimizer, std::move(options)) {}

Trainer::Trainer(Program program,
                 std::string_view schedule,
                 Optimizer optimizer,
                 TrainerOptions options)
    : Trainer(program,
              schedule_for(schedule, program.stage_graph(), program.microbatches()),
              optimizer,
              std::move(options)) {}

Trainer::Trainer(const Cluster& cluster,
                 Program program,
                 std::string_view schedule,
                 Optimizer optimizer,
                 TrainerOptions options)
    : Trainer(cluster,
              program,
              schedule_for(schedule, program.stage_graph(), program.microbatches()),
              optimizer,
              std::move(options)) {}

Trainer::~Trainer() {
  // In a child of fork() the state belongs to the parent, as do its threads and all that they hold.
  // At the end of the process other threads may be inside it, parked (PE-1).
  if (impl_ != nullptr && (!impl_->home.is_here() || process_end::begun())) {
    (void)impl_.release();
  }
}

Trainer::Trainer(Trainer&&) noexcept = default;

Trainer& Trainer::operator=(Trainer&& other) noexcept {
  Trainer replaced(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Trainer::Impl& Trainer::impl() const {
  process_end::admit();
  if (impl_ == nullptr) {
    throw Error(Errc::UsageArgument, "this trainer was moved from: use the one it was moved to");
  }
  impl_->home.require_here("this trainer");
  if (!impl_->armed.exchange(true)) {
    process_end::arm();  // before the destructor of a trainer that is a static object
  }
  return *impl_;
}

StepFuture Trainer::step(const Batch& inputs, const Batch& labels) {
  return impl().updates.train_on(inputs, labels, true);
}

StepFuture Trainer::accumulate(const Batch& inputs, const Batch& labels) {
  return impl().updates.train_on(inputs, labels, false);
}

StepFuture Trainer::step(const LocalBatch& batch) {
  return impl().updates.train_on(batch, true);
}

StepFuture Trainer::accumulate(const LocalBatch& batch) {
  return impl().updates.train_on(batch, false);
}

void Trainer::drop_accumulated() {
  impl().updates.begin();
}

std::vector<at::Tensor> Trainer::predict(const Batch& inputs) {
  return impl().evaluator.predict(inputs);
}

std::vector<at::Tensor> Trainer::predict(BatchSource& batches) {
  return impl().evaluator.predict(batches);
}

void Trainer::predict(BatchSource& batches, const OnOutputs& each) {
  impl().evaluator.predict(batches, each);
}

Evaluation Trainer::evaluate(BatchSource& batches, const std::vector<Metric>& metrics) {
  return impl().evaluator.evaluate(batches, metrics);
}

double Trainer::evaluate(const Batch& inputs, const Batch& labels) {
  std::vector<LabeledBatch> one{{inputs, labels}};
  internal::RangeSource source(one);
  return impl().evaluator.evaluate(source, {}).loss;
}

void Trainer::set_learning_rate(std::optional<double> rate) {
  if (rate) {
    check_rate(*rate, "a learning rate");
  }
  impl().updates.set_rate(rate);
}

void Trainer::set_clip(std::optional<double> norm) {
  if (norm) {
    check_clip(*norm, impl().options.clip_value);
  }
  impl().updates.set_clip(norm);
}

void Trainer::set_frozen(std::string_view group, std::optional<bool> frozen) {
  impl().updates.set_frozen(group_to_freeze(impl().options.groups, group, frozen), frozen);
}

void Trainer::scale_learning_rate(double factor) {
  check_rate(factor, "a factor of the learning rate");
  impl().updates.set_rate_factor(factor);
}

void Trainer::set_loop_state(std::int64_t steps, LoopState state) {
  if (!is_possible(state, steps)) {
    throw Error(Errc::UsageArgument,
                fmt::format("no loop of {} steps can have this state: epochs count from 1, and "
                            "nothing was found after later steps",
                            steps));
  }
  impl().loops->put(steps, std::move(state));
}

std::optional<LoopState> Trainer::loop_state() const {
  impl().ledger->drain();
  return impl().loops->at(steps());
}

StateDict Trainer::gradients() {
  const OnCallersThread scope;
  StateDict result;
  for (NamedTensor& t : impl().state.read_gradients()) {
    result.emplace_back(std::move(t.name), std::move(t.tensor));
  }
  return result;
}

std::int64_t Trainer::steps() const {
  return impl().state.updates();
}

std::uint64_t Trainer::seed() const {
  return impl().entry.seed();
}

namespace {

StateDict in_one_list(ModuleState state) {
  StateDict result;
  for (std::vector<NamedTensor>* of_kind : {&state.parameters, &state.buffers}) {
    for (NamedTensor& t : *of_kind) {
      result.emplace_back(std::move(t.name), std::move(t.tensor));
    }
  }
  return result;
}

}  // namespace

StateDict Trainer::state_dict() {
  return in_one_list(impl().module_state());
}

StateDict Trainer::averages() {
  const OnCallersThread scope;
  return in_one_list(impl().state.read_averages());
}

ModuleState Trainer::module_state() {
  return impl().module_state();
}

void Trainer::load_state_dict(const StateDict& state) {
  ModuleState found;  // the kind does not matter for a lookup by name
  for (const auto& [name, tensor] : state) {
    found.parameters.push_back({name, tensor});
  }
  impl().load_module_state("the state to load", found);
}

void Trainer::copy_into(const ModuleState& module) {
  load_state("the trainer's state", impl().module_state(), module);
}

void Trainer::save_module(const std::string& path) {
  ModuleState state = impl().module_state();
  const CompiledProgram& compiled = impl().program.compiled();
  std::map<std::string, bool> trained;
  for (const NamedTensor& parameter : compiled.graph.parameters) {
    trained[parameter.name] = parameter.tensor.requires_grad();
  }
  for (const StateName& known : compiled.state_names) {
    trained.emplace(known.name, trained[known.first]);
  }
  for (NamedTensor& parameter : state.parameters) {
    parameter.tensor.set_requires_grad(trained.at(parameter.name));
  }
  write_module(path, state, compiled.submodules);
}

void Trainer::load_module(const std::string& path) {
  Impl& loading = impl();
  loading.load_module_state(path, read_module(path));
}

void Trainer::save(const std::string& path) {
  begin_save([&](std::int64_t) { return path; })->publish();
}

std::unique_ptr<CheckpointSave> Trainer::begin_save(
    const std::function<std::string(std::int64_t)>& path_of) {
  Impl& saving = impl();
  const OnCallersThread scope;
  return stagecraft::begin_save(path_of, saving.state, saving.facts(saving.entry.seed()));
}

Checkpoint Trainer::checkpoint() {
  Impl& copied = impl();
  const OnCallersThread scope;
  return take_checkpoint(copied.state, copied.facts(copied.entry.seed()));
}

void Trainer::load(const std::string& path, SeedFrom seed_from) {
  Impl& loading = impl();  // before the file: a call that may not load fails with that reason
  loading.load_file(CheckpointReader(path), seed_from);
}

void Trainer::load(const CheckpointReader& file, SeedFrom seed_from) {
  impl().load_file(file, seed_from);
}

void Trainer::load(const Checkpoint& checkpoint, SeedFrom seed_from) {
  Impl& loading = impl();
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    by_name[name] = tensor;
  }
  loading.load(
      header_of(checkpoint),
      [&](const std::string& name) { return tensor_or_share(by_name, name); },
      seed_from);
}

std::vector<std::string> Trainer::processors() const {
  return impl().processors();
}

std::int64_t Trainer::recover() {
  return impl().recover();
}

bool Trainer::recovered_from_mirrors() const {
  return impl().recovery.from_mirrors;
}

const TrainerOptions& Trainer::options() const {
  return impl().options;
}

const Plan& Trainer::plan() const {
  return *impl().execution.plan;
}

std::vector<RankStatus> Trainer::status() {
  return rank_statuses(*impl().crew, impl().programs);
}

std::string Trainer::waits() {
  const Impl& asked = impl();
  const auto has_steps = [&] { return asked.ledger->has_steps(); };
  if (!has_steps()) {
    return "";
  }
  std::string words =
      waits_in_words(*asked.crew, asked.programs, asked.options.dispatch != Dispatch::Decided);
  return has_steps() ? words : "";  // a rank that was silent at the end of a step
}

}  // namespace stagecraft
