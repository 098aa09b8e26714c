#include "stagecraft/actors/trainer.h"

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include <ATen/core/grad_mode.h>
#include <c10/util/ParallelGuard.h>
#include <fmt/format.h>

#include "stagecraft/actors/checkpoint.h"
#include "stagecraft/actors/crew.h"
#include "stagecraft/actors/executor/state_names.h"
#include "stagecraft/actors/way_back.h"
#include "stagecraft/base/log.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/parts.h"
#include "stagecraft/compiler/random.h"
#include "stagecraft/compiler/replicate.h"
#include "stagecraft/compiler/tensor_files/module_file.h"

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

/// What a trainer does on its caller's thread is copying: without gradients, and without a pool of
/// threads that would outlive it (compiler/thread_count.h).
struct OnCallersThread {
  at::NoGradGuard no_grad;
  c10::ParallelGuard alone{true};
};

}  // namespace

struct Trainer::Impl {
  HomeProcess home;
  Program program;  ///< laid out for the schedule's replicas
  TrainerOptions options;
  Optimizer optimizer;
  std::uint64_t seed;
  std::shared_ptr<const Plan> train, evaluate;
  std::shared_ptr<StepLedger> ledger = std::make_shared<StepLedger>();
  std::unique_ptr<Crew> crew;
  std::optional<Layout> layout_of;  ///< the schedule's
  std::set<int> known;              ///< numbers of the variants that the ranks have
  std::vector<StateTensor> unused;  ///< parameters and buffers that no stage has: they live here

  Impl(const Cluster& cluster,
       const Program& p,
       const Schedule& schedule,
       Optimizer o,
       TrainerOptions t)
      : program(p),
        options(std::move(t)),
        optimizer(o),
        seed(options.seed.value_or(default_seed())) {
    check_options(options);
    check_optimizer(optimizer);
    const CheckResult checked = check(p, schedule);
    checked.or_throw();
    for (const std::string& note : checked.notes) {
      log(Level::Warning, "buffers not as in one process", {{"note", note}});
    }
    const Layout& layout = layout_of.emplace(*checked.layout);
    check_ranks(layout, cluster.ranks());
    check_mirror(options, layout);
    program = replicate(p, layout);
    train = std::make_shared<const Plan>(lower_schedule(program, schedule, layout, true));
    evaluate = std::make_shared<const Plan>(lower_schedule(program, schedule, layout, false));
    warn_of_too_many_threads();
    find_unused();
    crew = std::make_unique<Crew>(*cluster.launcher(), ledger, job());
  }

  [[nodiscard]] Job job() const {
    return {.program = program.shared(),
            .train = train,
            .evaluate = evaluate,
            .optimizer = optimizer,
            .options = options};
  }

  /// Helpers of LibTorch's pools spin while they wait, as long as there is a processor for each.
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

  /// Splits the batch, and has the ranks take on shapes that are new to them. What fails here fails
  /// before anything is ordered.
  StepInput input_of(const Batch& inputs, const Batch& labels, bool training) {
    const OnCallersThread scope;
    Parts parts = parts_of(program, inputs, labels);
    for (const std::shared_ptr<const Variant>& variant : parts.variants) {
      if (variant != nullptr && !known.contains(variant->number)) {
        crew->add_variant(std::make_shared<const JobVariant>(
            JobVariant{.number = variant->number,
                       .random = variant->random,
                       .stages = replicate(variant->stages, *layout_of)}));
        known.insert(variant->number);
      }
    }
    PartRuns runs = runs_of(parts);
    return {.training = training,
            .seed = seed,
            .inputs = std::move(parts.inputs),
            .labels = std::move(parts.labels),
            .parts = std::move(runs)};
  }

  EnteredStep enter(const Batch& inputs, const Batch& labels, bool training) {
    EnteredStep entered = ledger->enter(input_of(inputs, labels, training), options.outstanding);
    crew->submit(entered.submission);
    return entered;
  }

  StepFuture run(const Batch& inputs, const Batch& labels, bool training) {
    return StepFuture(enter(inputs, labels, training).result);
  }

  /// The whole state under its names; a buffer that two stages have is taken from the first.
  std::vector<StateTensor> read_state() {
    ledger->drain();
    if (const auto lost = ledger->lost()) {
      throw Error(Errc::WorkerLost,
                  fmt::format("the weights are undefined; to go on: {}", way_back(options.mirror)))
          .because(*lost);
    }
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
            .tensors = std::move(tensors)};
  }

  /// The whole state as read_state has it, by its names there.
  std::map<std::string, at::Tensor> state_by_name() {
    std::map<std::string, at::Tensor> by_name;
    for (auto& [name, tensor] : read_state()) {
      by_name[name] = tensor;
    }
    return by_name;
  }

  /// Its weights and buffers as the module names them; one tensor for all names of a tie.
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

  /// `from` says in messages where it is from.
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
    seed = seed_from == SeedFrom::Checkpoint ? checkpoint.seed : seed;
  }

  /// Gives every rank what it keeps. Requires: all of it is there, in the right shapes.
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
    ledger->resume(updates);
  }

  std::int64_t recover() {
    if (!options.mirror) {
      throw Error(Errc::UsageArgument,
                  "recover() needs copies of committed states, and this trainer keeps none: set "
                  "TrainerOptions::mirror before, load a checkpoint now");
    }
    ledger->drain();
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
    return point.updates;
  }
};

Trainer::Trainer(const Cluster& cluster,
                 Program program,
                 Schedule schedule,
                 Optimizer optimizer,
                 TrainerOptions options)
    : impl_(std::make_unique<Impl>(cluster, program, schedule, optimizer, std::move(options))) {}

Trainer::~Trainer() {
  if (impl_ != nullptr && !impl_->home.is_here()) {
    (void)impl_.release();  // the parent's: it has the threads, and what they hold
  }
}

Trainer::Trainer(Trainer&&) noexcept = default;

Trainer& Trainer::operator=(Trainer&& other) noexcept {
  Trainer replaced(std::move(*this));
  impl_ = std::move(other.impl_);
  return *this;
}

Trainer::Impl& Trainer::impl() const {
  if (impl_ == nullptr) {
    throw Error(Errc::UsageArgument, "this trainer was moved from: use the one it was moved to");
  }
  impl_->home.require_here("this trainer");
  return *impl_;
}

StepFuture Trainer::step(const Batch& inputs, const Batch& labels) {
  return impl().run(inputs, labels, true);
}

double Trainer::evaluate(const Batch& inputs, const Batch& labels) {
  return impl().run(inputs, labels, false).get().mean_loss;
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
  ModuleState found;  // kinds do not matter to what is looked up by name
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
  Impl& loading = impl();
  loading.load(read_checkpoint(path), seed_from);
}

std::int64_t Trainer::recover() {
  return impl().recover();
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
    const Plan& plan = reply->training ? *impl().train : *impl().evaluate;
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
