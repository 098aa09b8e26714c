#include "stagecraft/actors/trainer/trainer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/ParallelGuard.h>
#include <fmt/format.h>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/crew/known_programs.h"
#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/trainer/checkpoint.h"
#include "stagecraft/actors/trainer/evaluation_results.h"
#include "stagecraft/base/advice.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process_end.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/compiler/shapes/replicate.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/compiler/tensor_files/module_file.h"
#include "stagecraft/scheduler/builders/schedule_for.h"

namespace stagecraft {
namespace {

void check_ranks(const Layout& layout, int available) {
  if (layout.ranks() > available) {
    throw Error(Errc::ClusterMember,
                fmt::format("the schedule runs on {} ranks and the cluster has {}: make a cluster "
                            "of {}, or a schedule of fewer rows",
                            layout.ranks(),
                            available,
                            layout.ranks()));
  }
}

void check_mirror(const TrainerOptions& options, const Layout& layout) {
  if (options.mirror && layout.ranks() < 2) {
    throw Error(Errc::UsageArgument,
                "mirror needs a neighbour to keep the copies, and this schedule runs on one rank: "
                "leave it out, or use a schedule of more rows");
  }
}

/// Sets up the caller's thread, on which a trainer copies tensors: without gradients, and without a
/// thread pool that would outlive it (compiler/libtorch/thread_count.h). The end of the process
/// waits for it.
struct OnCallersThread {
  process_end::AtWork at_work;
  at::NoGradGuard no_grad;
  c10::ParallelGuard alone{true};
};

}  // namespace

struct Trainer::Impl {
  HomeProcess home;
  std::atomic<bool> armed{false};  ///< process_end was told of the trainer
  Program program;                 ///< laid out for the schedule's replicas
  std::shared_ptr<Evaluations> evaluations;
  TrainerOptions options;
  Optimizer optimizer;
  std::uint64_t seed;
  std::shared_ptr<const Plan> train;
  std::shared_ptr<StepLedger> ledger = std::make_shared<StepLedger>();
  const Cluster cluster;
  std::unique_ptr<Crew> crew;
  std::optional<KnownPrograms> programs;
  std::optional<double> rate;       ///< set by set_learning_rate
  std::int64_t replaced_at = 0;     ///< updates when the state was last replaced
  std::vector<StateTensor> unused;  ///< parameters and buffers that no stage has

  /// The update of the next batch.
  struct {
    std::int64_t number = 0;
    std::int32_t batches = 0;  ///< the batches that it has
    std::int64_t first_samples = 1;
  } update;

  Impl(const Cluster& c, const Program& p, const Schedule& schedule, Optimizer o, TrainerOptions t)
      : program(p),
        evaluations(p.evaluations()),
        options(std::move(t)),
        optimizer(o),
        seed(options.seed.value_or(default_seed())),
        cluster(c) {
    check_options(options);
    check_optimizer(optimizer);
    check_groups(options.groups, optimizer);
    check_groups_match(options.groups, p.parameter_names());
    const CheckResult checked = check(p, schedule);
    checked.or_throw();
    for (const std::string& note : checked.notes) {
      log(Level::Warning, "buffers not as in one process", {{"note", note}});
    }
    const Layout& layout = *checked.layout;
    check_ranks(layout, cluster.ranks());
    check_mirror(options, layout);
    program = replicate(resize(p, schedule.stage_graph().microbatch_sizes()), layout);
    train = std::make_shared<const Plan>(lower_schedule(program, schedule, layout, true));
    programs.emplace(program, train, schedule, layout);
    warn_of_too_many_threads();
    find_unused();
    process_end::arm();
    expect_threads();
    crew = std::make_unique<Crew>(*cluster.launcher(), ledger, job());
  }

  [[nodiscard]] Job job() const {
    return {
        .program = program.shared(), .train = train, .optimizer = optimizer, .options = options};
  }

  /// Helper threads of LibTorch's pools spin while they wait only if each has a processor. If not,
  /// they must be woken up.
  void warn_of_too_many_threads() const {
    const auto threads = train->ranks.size() * static_cast<std::size_t>(options.threads_per_worker);
    const auto processors = static_cast<std::size_t>(std::thread::hardware_concurrency());
    if (options.threads_per_worker > 1 && threads > processors) {
      static std::once_flag once;
      std::call_once(once, [&] {
        log(Level::Warning,
            "more threads than processors: operators will wait for each other's threads to wake up",
            {{"ranks", train->ranks.size()},
             {"threads_per_worker", options.threads_per_worker},
             {"processors", processors}});
      });
    }
  }

  void find_unused() {
    const OnCallersThread scope;
    const CompiledProgram& compiled = program.compiled();
    std::set<int> parameters, buffers;
    for (const StageProgram& stage : compiled.partition.stages) {
      for (const StageParameter& parameter : stage.parameters) {
        parameters.insert(parameter.position);
      }
      for (const StageBuffer& buffer : stage.buffers) {
        buffers.insert(buffer.position);
      }
    }
    const auto keep = [this](std::string_view kind,
                             const std::vector<NamedTensor>& all,
                             const std::set<int>& used) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!used.contains(static_cast<int>(i))) {
          unused.push_back({state_name(kind, all[i].name), all[i].tensor.detach().clone()});
        }
      }
    };
    keep(kWeight, compiled.graph.parameters, parameters);
    keep(kBuffer, compiled.graph.buffers, buffers);
  }

  /// Takes the tensors out of `split`, the parts of a batch, in the form in which they cross to a
  /// rank. `scale`: of their weights.
  StepInput input_of(const KnownPrograms::Told& told, Parts& split, double scale = 1.0) const {
    PartRuns runs = runs_of(split, scale);  // first: it counts the tensors
    for (std::vector<std::vector<at::Tensor>>* side : {&split.inputs, &split.labels}) {
      for (std::vector<at::Tensor>& part : *side) {
        for (at::Tensor& tensor : part) {
          tensor = to_memory_order(tensor, memory_order_of(tensor));
        }
      }
    }
    return {.program = told.number,
            .plan = told.plan,
            .seed = seed,
            .inputs = std::move(split.inputs),
            .labels = std::move(split.labels),
            .parts = std::move(runs)};
  }

  EnteredStep enter(StepInput input) {
    EnteredStep entered = ledger->enter(std::move(input), options.outstanding);
    crew->submit(entered.submission);
    return entered;
  }

  /// `updates`: this is the last batch of its update.
  StepFuture train_on(const Batch& inputs, const Batch& labels, bool updates) {
    const OnCallersThread scope;
    return train_on(parts_of(program, inputs, labels), {}, updates);
  }

  StepFuture train_on(const LocalBatch& batch, bool updates) {
    if (batch.source.empty() || batch.number < 0) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("a batch that ranks read needs the name of a source and a number from "
                      "0 on, found \"{}\" and {}",
                      batch.source,
                      batch.number));
    }
    return train_on(parts_as_compiled(program), batch, updates);
  }

  /// Trains on the tensors of `parts`, or reads them from `local`.
  StepFuture train_on(Parts parts, const LocalBatch& local, bool updates) {
    const KnownPrograms::Told& told = programs->told(*crew, program, parts, unused);
    if (update.batches == 0) {
      update.first_samples = parts.first_samples;
    }
    StepInput input = input_of(told, parts, scale_of(parts, update.first_samples));
    input.local = local;
    input.learning_rate = rate;
    input.update = update.number;
    input.batch = update.batches;
    input.updates = updates;
    const EnteredStep entered = enter(std::move(input));
    if (updates) {
      begin_update();
    } else {
      ++update.batches;
    }
    return StepFuture(entered.result);
  }

  void begin_update() {
    ++update.number;
    update.batches = 0;
  }

  [[nodiscard]] Evaluations& in_evaluation_mode() const {
    if (!program.compiled().stage_graph.microbatch_sizes().empty()) {
      throw Error(Errc::UsageArgument,
                  "the stages of this trainer's schedule take microbatches of different sizes, and "
                  "an evaluation has one size: save a checkpoint and evaluate with a trainer whose "
                  "schedule has no sizes");
    }
    if (evaluations == nullptr) {
      throw Error(Errc::UsageArgument,
                  "this program was made without a module, which evaluation would capture once "
                  "more: make it with sc::compile");
    }
    return *evaluations;
  }

  /// A batch that is being evaluated.
  struct UnderWay {
    KnownPrograms::Told told;
    Parts parts;  ///< without their tensors
    StepFuture step;
    std::shared_ptr<std::vector<Future<at::Tensor>>> results;
  };

  UnderWay begin(const Program& of, const Batch& inputs, const Batch& labels) {
    const OnCallersThread scope;
    Parts parts = parts_of(of, inputs, labels);
    const KnownPrograms::Told& told = programs->told(*crew, of, parts, unused);
    StepInput input = input_of(told, parts);
    const auto results = std::make_shared<std::vector<Future<at::Tensor>>>();
    input.results = results;
    StepFuture step(enter(std::move(input)).result);
    return {told, std::move(parts), std::move(step), results};
  }

  [[nodiscard]] EvaluationResults results_of(const UnderWay& batch) const {
    const Deadline deadline = std::chrono::steady_clock::now() + options.step_deadline;
    return take_results(batch.told,
                        programs->layout(),
                        batch.parts,
                        *batch.results,
                        [this, deadline](Rank from, const Future<at::Tensor>& result) {
                          return crew->wait(from, result, deadline);
                        });
  }

  std::vector<at::Tensor> predict(const Batch& inputs) {
    const UnderWay batch = begin(in_evaluation_mode().prediction(inputs), inputs, {});
    (void)batch.step.get();
    const OnCallersThread scope;
    return joined(results_of(batch), batch.parts, batch.told.program.compiled().row_dimensions);
  }

  Evaluation evaluate(BatchSource& batches, const std::vector<Metric>& metrics) {
    Evaluation all;
    for (const Metric& metric : metrics) {
      all.metrics.emplace_back(metric.name(), at::Tensor());
    }
    std::deque<UnderWay> under_way;
    const auto take = [&] {
      const UnderWay batch = std::move(under_way.front());
      under_way.pop_front();
      add(batch, all);
    };
    batches.begin_epoch();
    while (const std::optional<LabeledBatch> batch = batches.next()) {
      const auto& [inputs, labels] = *batch;
      const Program of = in_evaluation_mode().measurement(metrics, inputs, labels);
      if (std::ssize(under_way) == options.outstanding) {
        take();
      }
      under_way.push_back(begin(of, inputs, labels));
    }
    while (!under_way.empty()) {
      take();
    }
    if (all.samples == 0) {
      throw Error(Errc::UsageArgument, "evaluate() expects a batch at least, found none");
    }
    all.loss /= static_cast<double>(all.samples);
    for (auto& [name, sum] : all.metrics) {
      sum /= static_cast<double>(all.samples);
    }
    return all;
  }

  /// Adds the result of a batch, times its samples.
  void add(const UnderWay& batch, Evaluation& all) {
    const StepResult result = batch.step.get();
    const OnCallersThread scope;
    const std::vector<at::Tensor> found = means(results_of(batch), batch.parts);
    const auto samples = static_cast<double>(batch.parts.samples);
    all.loss += result.mean_loss * samples;
    all.samples += batch.parts.samples;
    ++all.batches;
    for (std::size_t i = 0; i < found.size(); ++i) {
      at::Tensor& sum = all.metrics[i].second;
      sum = sum.defined() ? sum + found[i] * samples : found[i] * samples;
    }
  }

  /// Errors: WorkerLost if the state of the weights is unknown.
  void require_weights() {
    ledger->drain();
    if (const auto lost = ledger->lost()) {
      throw Error(
          Errc::WorkerLost,
          fmt::format("the weights are undefined{}{}", kToGoOn, recovery_advice(options.mirror)))
          .because(*lost);
    }
  }

  std::map<std::string, at::Tensor> read_gradients() {
    if (!options.keep_gradients) {
      throw Error(Errc::UsageArgument,
                  "gradients() needs steps that keep theirs: set TrainerOptions::keep_gradients");
    }
    require_weights();
    if (ledger->committed() == replaced_at) {
      throw Error(Errc::UsageArgument,
                  "there are no gradients before a step was made: make one, then ask for them");
    }
    std::map<std::string, at::Tensor> by_name;
    for (std::vector<StateTensor>& of_rank : crew->read_gradients()) {
      for (StateTensor& gradient : of_rank) {
        by_name.try_emplace(std::move(gradient.name), std::move(gradient.tensor));
      }
    }
    return by_name;
  }

  /// Returns the whole state by name; a buffer of two stages comes from the first one.
  std::vector<StateTensor> read_state() {
    require_weights();
    std::vector<StateTensor> all;
    for (const StateTensor& kept : unused) {
      all.push_back({kept.name, kept.tensor.clone()});
    }
    std::set<std::string> names;
    for (std::vector<StateTensor>& of_rank : crew->read_state()) {
      for (StateTensor& state : of_rank) {
        if (names.insert(state.name).second) {
          all.push_back(std::move(state));
        }
      }
    }
    return all;
  }

  Checkpoint checkpoint() {
    const OnCallersThread scope;
    std::vector<StateTensor> tensors = read_state();  // first: it waits for the steps under way
    return {.step = ledger->committed(),
            .seed = seed,
            .optimizer = std::string(optimizer_name(optimizer)),
            .tensors = std::move(tensors),
            .processors = processors()};
  }

  /// Returns the processors as Checkpoint has them.
  [[nodiscard]] std::vector<std::string> processors() const {
    const std::vector<WorkerPlace> workers = cluster.workers();
    std::set<std::string> all;
    for (const RankPlan& rank : train->ranks) {
      const ProcessorFacts& processor = workers[rank.rank.index()].processor;
      if (!processor.capability.empty()) {  // empty: the rank has no worker now
        all.insert(choice_text(processor));
      }
    }
    return {all.begin(), all.end()};
  }

  /// Returns the state of read_state as a map by name.
  std::map<std::string, at::Tensor> state_by_name() {
    std::map<std::string, at::Tensor> by_name;
    for (auto& [name, tensor] : read_state()) {
      by_name[name] = tensor;
    }
    return by_name;
  }

  /// Returns the weights and buffers of the state under the module's names; one tensor for all
  /// names of a tie.
  [[nodiscard]] ModuleState named_by_module(
      const std::map<std::string, at::Tensor>& by_name) const {
    ModuleState state;
    for (const StateName& entry : program.compiled().state_names) {
      const at::Tensor& tensor =
          by_name.at(state_name(entry.buffer ? kBuffer : kWeight, entry.first));
      (entry.buffer ? state.buffers : state.parameters).push_back({entry.name, tensor});
    }
    return state;
  }

  ModuleState module_state() {
    const OnCallersThread scope;
    return named_by_module(state_by_name());
  }

  /// `from` names the source in messages.
  void load_module_state(const std::string& from, const ModuleState& found) {
    const OnCallersThread scope;
    const std::map<std::string, at::Tensor> by_name = state_by_name();
    load_state(from, found, named_by_module(by_name));
    put_state(crew->list_state(), by_name, ledger->committed());
  }

  [[nodiscard]] ExpectedState expected_state(const std::vector<StateListing>& listings) const {
    ExpectedState expected{
        .seed = std::nullopt, .optimizer = std::string(optimizer_name(optimizer)), .tensors = {}};
    const auto add = [&](const std::string& name, const std::string& type, at::IntArrayRef shape) {
      expected.tensors.push_back({name, type, shape.vec()});
    };
    for (const StateTensor& kept : unused) {
      add(kept.name, c10::toString(kept.tensor.scalar_type()), kept.tensor.sizes());
    }
    for (const StateListing& listing : listings) {
      for (std::size_t i = 0; i < listing.names.size(); ++i) {
        add(listing.names[i], listing.types[i], listing.shapes[i]);
      }
    }
    return expected;
  }

  void load(const Checkpoint& checkpoint, SeedFrom seed_from) {
    const OnCallersThread scope;
    ledger->drain();
    begin_update();
    crew->mend();
    const std::vector<StateListing> listings = crew->list_state();
    ExpectedState expected = expected_state(listings);
    if (seed_from == SeedFrom::Same) {
      expected.seed = seed;
    }
    check_same_model(checkpoint, expected);
    std::map<std::string, at::Tensor> by_name;
    for (const auto& [name, tensor] : checkpoint.tensors) {
      by_name[name] = tensor;
    }
    put_state(listings, by_name, checkpoint.step);
    if (const std::string other = other_processors(checkpoint.processors, processors());
        !other.empty()) {
      log(Level::Info, "checkpoint of other processors", {{"why", other}});
    }
    seed = seed_from == SeedFrom::Checkpoint ? checkpoint.seed : seed;
  }

  /// Gives every rank its state. Requires: `by_name` has all of it, in the right shapes.
  void put_state(const std::vector<StateListing>& listings,
                 const std::map<std::string, at::Tensor>& by_name,
                 std::int64_t updates) {
    std::vector<std::vector<StateTensor>> state;
    for (const StateListing& listing : listings) {
      state.emplace_back();
      for (const std::string& name : listing.names) {
        state.back().push_back({name, by_name.at(name)});
      }
    }
    try {
      crew->write_state(state, updates);
    } catch (const Error& error) {
      ledger->lose(error);
      throw;
    }
    for (StateTensor& kept : unused) {
      kept.tensor.copy_(by_name.at(kept.name));
    }
    programs->unused_changed();
    ledger->resume(updates);
    replaced_at = updates;
  }

  std::int64_t recover() {
    if (!options.mirror) {
      throw Error(Errc::UsageArgument,
                  "recover() needs copies of committed states, and this trainer keeps none: set "
                  "TrainerOptions::mirror before, load a checkpoint now");
    }
    ledger->drain();
    begin_update();
    crew->mend();
    std::vector<MirrorStock> stocks;
    for (StateListing& listing : crew->list_state()) {
      stocks.push_back({.own = std::move(listing.own), .kept = std::move(listing.kept)});
    }
    const RecoveryPoint point = choose_recovery(stocks);
    try {
      crew->take_mirrors(point);
    } catch (const Error& error) {
      ledger->lose(error);
      throw;
    }
    ledger->resume(point.updates);
    replaced_at = point.updates;
    return point.updates;
  }
};

Trainer::Trainer(const Cluster& cluster,
                 Program program,
                 Schedule schedule,
                 Optimizer optimizer,
                 TrainerOptions options)
    : impl_(std::make_unique<Impl>(cluster, program, schedule, optimizer, std::move(options))) {}

// As many ranks as rows: a rank without a task costs nothing.
Trainer::Trainer(Program program, Schedule schedule, Optimizer optimizer, TrainerOptions options)
    : Trainer(Cluster::local(std::max<int>(1, static_cast<int>(schedule.rows().size()))),
              program,
              schedule,
              optimizer,
              std::move(options)) {}

Trainer::Trainer(Program program,
                 std::string_view schedule,
                 Optimizer optimizer,
                 TrainerOptions options)
    : Trainer(program,
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
  return impl().train_on(inputs, labels, true);
}

StepFuture Trainer::accumulate(const Batch& inputs, const Batch& labels) {
  return impl().train_on(inputs, labels, false);
}

StepFuture Trainer::step(const LocalBatch& batch) {
  return impl().train_on(batch, true);
}

StepFuture Trainer::accumulate(const LocalBatch& batch) {
  return impl().train_on(batch, false);
}

void Trainer::drop_accumulated() {
  impl().begin_update();
}

std::vector<at::Tensor> Trainer::predict(const Batch& inputs) {
  return impl().predict(inputs);
}

Evaluation Trainer::evaluate(BatchSource& batches, const std::vector<Metric>& metrics) {
  return impl().evaluate(batches, metrics);
}

double Trainer::evaluate(const Batch& inputs, const Batch& labels) {
  std::vector<LabeledBatch> one{{inputs, labels}};
  internal::RangeSource source(one);
  return impl().evaluate(source, {}).loss;
}

void Trainer::set_learning_rate(std::optional<double> rate) {
  if (rate) {
    check_rate(*rate, "a learning rate");
  }
  impl().rate = rate;
}

StateDict Trainer::gradients() {
  const OnCallersThread scope;
  std::map<std::string, at::Tensor> by_name = impl().read_gradients();
  StateDict result;
  for (const std::string& name : impl().program.parameter_names()) {
    if (const auto found = by_name.find(name); found != by_name.end()) {
      result.emplace_back(name, found->second);
    }
  }
  return result;
}

std::int64_t Trainer::steps() const {
  return impl().ledger->committed();
}

std::uint64_t Trainer::seed() const {
  return impl().seed;
}

StateDict Trainer::state_dict() {
  StateDict result;
  ModuleState state = impl().module_state();
  for (std::vector<NamedTensor>* of_kind : {&state.parameters, &state.buffers}) {
    for (NamedTensor& t : *of_kind) {
      result.emplace_back(std::move(t.name), std::move(t.tensor));
    }
  }
  return result;
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
  write_checkpoint(path, impl().checkpoint());
}

Checkpoint Trainer::checkpoint() {
  return impl().checkpoint();
}

void Trainer::load(const std::string& path, SeedFrom seed_from) {
  Impl& loading = impl();  // before the file: a call that may not load fails with that reason
  loading.load(read_checkpoint(path), seed_from);
}

void Trainer::load(const Checkpoint& checkpoint, SeedFrom seed_from) {
  impl().load(checkpoint, seed_from);
}

std::vector<std::string> Trainer::processors() const {
  return impl().processors();
}

std::int64_t Trainer::recover() {
  return impl().recover();
}

const TrainerOptions& Trainer::options() const {
  return impl().options;
}

const Plan& Trainer::plan() const {
  return *impl().train;
}

std::vector<RankStatus> Trainer::status() {
  std::vector<RankStatus> result;
  for (const auto& reply : impl().crew->status()) {
    RankStatus& status =
        result.emplace_back(RankStatus{.rank = Rank(result.size()), .answers = reply.has_value()});
    if (!reply) {
      continue;
    }
    const Plan& plan = impl().programs->plan(reply->program);
    const auto& instructions = plan.ranks[reply->rank.index()].instructions;
    status.seconds = reply->seconds;
    status.waiting_for = reply->waiting_for;
    if (reply->instruction >= 0 &&
        static_cast<std::size_t>(reply->instruction) < instructions.size()) {
      status.instruction = to_string(instructions[static_cast<std::size_t>(reply->instruction)]);
    }
  }
  return result;
}

}  // namespace stagecraft
