#include "stagecraft/actors/trainer.h"

#include <algorithm>
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
#include "stagecraft/compiler/replicate.h"
#include "stagecraft/scheduler/schedule_for.h"

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
  std::shared_ptr<const Plan> train, evaluate;
  std::shared_ptr<StepLedger> ledger = std::make_shared<StepLedger>();
  std::unique_ptr<Crew> crew;
  std::optional<Layout> layout_of;  ///< the schedule's
  std::set<int> known;              ///< numbers of the variants that the ranks have
  std::vector<StateTensor> unused;  ///< parameters and buffers that no stage has: they live here

  /// The update that the next batch belongs to.
  struct {
    std::int64_t number = 0;
    std::int32_t batches = 0;  ///< that it has already
    std::int64_t first_samples = 1;
  } update;

  Impl(const Cluster& cluster,
       const Program& p,
       const Schedule& schedule,
       Optimizer o,
       TrainerOptions t)
      : program(p), options(std::move(t)), optimizer(o) {
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
    const bool further = training && update.batches > 0;
    if (training && !further) {
      update.first_samples = parts.first_samples;
    }
    PartRuns runs = runs_of(parts, further ? scale_of(parts, update.first_samples) : 1.0);
    return {.training = training,
            .inputs = std::move(parts.inputs),
            .labels = std::move(parts.labels),
            .parts = std::move(runs),
            .update = update.number,
            .batch = update.batches};
  }

  EnteredStep enter(StepInput input) {
    EnteredStep entered = ledger->enter(std::move(input), options.outstanding);
    crew->submit(entered.submission);
    return entered;
  }

  /// `updates`: it is the last batch of its update.
  StepFuture train_on(const Batch& inputs, const Batch& labels, bool updates) {
    StepInput input = input_of(inputs, labels, true);
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

  /// The whole state under its names; a buffer that two stages have is taken from the first.
  std::vector<StateTensor> read_state() {
    ledger->drain();
    if (const auto lost = ledger->lost()) {
      throw Error(Errc::WorkerLost,
                  fmt::format("the weights are undefined; to go on: {}", way_back(options.mirror)))
          .because(*lost);
    }
    std::vector<StateTensor> all = unused;
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

  void save(const std::string& path) {
    const OnCallersThread scope;
    std::vector<StateTensor> tensors = read_state();  // first: it waits for the steps under way
    write_checkpoint(path,
                     {.step = ledger->committed(),
                      .seed = options.seed,
                      .optimizer = std::string(optimizer_name(optimizer)),
                      .tensors = std::move(tensors)});
  }

  [[nodiscard]] ExpectedState expected_state(const std::vector<StateListing>& listings) const {
    ExpectedState expected{
        .seed = options.seed, .optimizer = std::string(optimizer_name(optimizer)), .tensors = {}};
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

  void load(const Checkpoint& checkpoint) {
    const OnCallersThread scope;
    ledger->drain();
    begin_update();
    crew->mend();
    const std::vector<StateListing> listings = crew->list_state();
    check_same_model(checkpoint, expected_state(listings));
    std::map<std::string, at::Tensor> by_name;
    for (const auto& [name, tensor] : checkpoint.tensors) {
      by_name[name] = tensor;
    }
    std::vector<std::vector<StateTensor>> state;
    for (const StateListing& listing : listings) {
      state.emplace_back();
      for (const std::string& name : listing.names) {
        state.back().push_back({name, by_name.at(name)});
      }
    }
    try {
      crew->write_state(state, checkpoint.step);
    } catch (const Error& error) {
      ledger->lose(error);
      throw;
    }
    for (StateTensor& kept : unused) {
      kept.tensor.copy_(by_name.at(kept.name));
    }
    ledger->resume(checkpoint.step);
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
    return point.updates;
  }
};

Trainer::Trainer(const Cluster& cluster,
                 Program program,
                 Schedule schedule,
                 Optimizer optimizer,
                 TrainerOptions options)
    : impl_(std::make_unique<Impl>(cluster, program, schedule, optimizer, std::move(options))) {}

// As many ranks as rows: one without a task costs nothing.
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
  return impl().train_on(inputs, labels, true);
}

StepFuture Trainer::accumulate(const Batch& inputs, const Batch& labels) {
  return impl().train_on(inputs, labels, false);
}

void Trainer::drop_accumulated() {
  impl().begin_update();
}

double Trainer::evaluate(const Batch& inputs, const Batch& labels) {
  Impl& evaluating = impl();
  StepInput input = evaluating.input_of(inputs, labels, false);
  return StepFuture(evaluating.enter(std::move(input)).result).get().mean_loss;
}

std::int64_t Trainer::steps() const {
  return impl().ledger->committed();
}

StateDict Trainer::state_dict() {
  const OnCallersThread scope;
  std::map<std::string, at::Tensor> by_name;
  for (auto& [name, tensor] : impl().read_state()) {
    by_name[name] = tensor;
  }
  StateDict result;
  for (const std::string& name : impl().program.parameter_names()) {
    result.emplace_back(name, by_name.at(state_name(kWeight, name)).clone());
  }
  return result;
}

void Trainer::save(const std::string& path) {
  impl().save(path);
}

void Trainer::load(const std::string& path) {
  Impl& loading = impl();
  loading.load(read_checkpoint(path));
}

StateDict Trainer::buffers() {
  const OnCallersThread alone;
  StateDict result;
  for (auto& [name, tensor] : impl().read_state()) {
    if (name.starts_with(kBuffer)) {
      result.emplace_back(name.substr(kBuffer.size()), tensor.clone());
    }
  }
  return result;
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
