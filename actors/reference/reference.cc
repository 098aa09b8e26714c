#include "stagecraft/actors/reference/reference.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "stagecraft/actors/executor/commit/clip.h"
#include "stagecraft/actors/executor/commit/non_finite.h"
#include "stagecraft/actors/executor/commit/tie_sum.h"
#include "stagecraft/actors/executor/optimizer/master_weights.h"
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/executor/stage/backward.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/actors/reference/sized_pass.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/ties.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/inproc.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Passes a value on unchanged and makes its gradient contiguous (keeps RE-1).
struct Boundary : torch::autograd::Function<Boundary> {
  static at::Tensor forward(torch::autograd::AutogradContext*, const at::Tensor& value) {
    return value.view_as(value);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0].contiguous()};
  }
};

/// The sum of one copy of a stage.
struct Partial {
  Partial(const SumOrder::Microbatches& of, const Tensors& like)
      : microbatches(of.begin(), of.end()) {
    for (const at::Tensor& gradient : like) {
      sums.push_back(at::empty_like(gradient));
    }
    adder = std::make_unique<GradientSums>(sums, Tensors());
    all.resize(sums.size());
    std::iota(all.begin(), all.end(), 0);
  }

  std::set<std::int32_t> microbatches;
  Tensors sums;
  std::vector<std::size_t> all;
  std::unique_ptr<GradientSums> adder;
};

/// Adds to the first tensors the others, one by one.
void add_up(const Tensors& first, const Tensors& more) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    first[i].add_(more[i]);
  }
}

}  // namespace

struct Reference::Impl {
  Program program;
  Optimizer optimizer;
  ReferenceOptions options;
  LossScale scale = first_scale(options.loss_scaling);
  std::uint64_t seed = options.seed.value_or(default_seed());
  InprocNetwork network{1};
  TransportCollective collective{network.endpoint(Rank(0))};
  std::vector<StageRuntime> stages;  // in an order in which they can run
  struct OfShape {
    std::shared_ptr<const OtherShape> shape;
    std::vector<StageRuntime> stages;  // in the same order
  };
  std::map<int, OfShape> shapes;
  std::vector<torch::autograd::Edge> edges;
  std::vector<std::unique_ptr<TieSum>> ties;
  /// By stage, in the order of `stages`: where the copies of a plan add up; empty without copies.
  using Round = std::vector<std::vector<Partial>>;  // by rank and copy
  std::vector<std::vector<Round>> partials;
  std::vector<std::int32_t> order;  ///< of the microbatches of a batch
  std::int64_t done = 0;
  std::optional<double> set_rate, set_clip;
  GroupUpdates groups;
  GroupFreezes set_frozen;
  double rate_factor = 1.0;
  bool clipped = false;  // the last update

  /// The batches so far of the update in progress.
  struct Unfinished {
    std::int64_t first_samples = 1;
    double loss_unit = 1.0;  // LM-1
    PartRuns parts;
    std::vector<double> losses;
    StepCounts counts;
  };
  std::optional<Unfinished> unfinished;

  Impl(Program p, Optimizer o, ReferenceOptions opt)
      : program(std::move(p)), optimizer(o), options(std::move(opt)) {
    check_optimizer(optimizer);
    check_learning_rate(options.learning_rate);
    check_loss_weight(options.loss_weight, program.stage_graph());
    check_groups(options.groups, optimizer);
    check_groups_match(options.groups, program.parameter_names());
    if (options.master_weights) {
      check_master_weights(program.compiled().graph.parameters);
    }
    groups = GroupUpdates(options.groups, program.parameter_names());
    set_frozen.resize(options.groups.size());
    const CompiledProgram& compiled = program.compiled();
    const std::vector<NamedTensor> start = initial_state(compiled.graph);
    for (const StageId id : compiled.partition.order) {
      stages.emplace_back(
          compiled.partition.stages[id.index()], optimizer, bucket_options(options));
      stages.back().load(start);
      for (const auto& edge : stages.back().buckets.gradient_edges()) {
        edges.push_back(edge);
      }
    }
    for (const Tie& tie : ties_of(compiled)) {
      TieParts parts{.ranks = std::vector<Rank>(tie.stages.size(), Rank(0)),
                     .parameters = tie.parameters,
                     .mine = {}};
      for (const StageId id : tie.stages) {
        parts.mine.push_back(&*std::ranges::find(
            stages, id, [](const StageRuntime& stage) { return stage.program->id; }));
      }
      ties.push_back(std::make_unique<TieSum>(
          Group{{Rank(0)}, static_cast<std::int32_t>(1 + ties.size())}, parts));
    }
    take_sum_order();
  }

  /// Keeps RE-3.
  void take_sum_order() {
    const int microbatches = program.microbatches();
    order.resize(static_cast<std::size_t>(microbatches));
    std::iota(order.begin(), order.end(), 0);
    const auto common = options.sums == nullptr || options.sums->is_plain()
                            ? std::nullopt
                            : options.sums->common_order(microbatches);
    if (!common) {
      return;
    }
    order = *common;
    for (const StageRuntime& stage : stages) {
      auto& of_stage = partials.emplace_back();
      if (stage.program->id.index() >= options.sums->stages.size()) {
        continue;
      }
      for (const SumOrder::Round& round : options.sums->stages[stage.program->id.index()]) {
        Round& of_round = of_stage.emplace_back();
        for (const SumOrder::RankSum& rank : round) {
          auto& of_rank = of_round.emplace_back();
          for (const SumOrder::Microbatches& copy : rank) {
            of_rank.emplace_back(copy, stage.buckets.living_gradients());
          }
        }
      }
    }
  }

  /// Returns the stages for microbatches of this shape.
  const std::vector<StageRuntime>& stages_for(const std::shared_ptr<const OtherShape>& shape) {
    if (shape == nullptr) {
      return stages;
    }
    OfShape& found = shapes[shape->number];
    if (found.shape == nullptr) {
      found.shape = shape;
      for (const StageRuntime& stage : stages) {
        found.stages.emplace_back(shape->stages[stage.program->id.index()], stage);
      }
    }
    return found.stages;
  }

  /// `updates`: this is the last batch of its update.
  ReferenceStep on_batch(const Batch& inputs, const Batch& labels, bool updates) {
    Parts parts = parts_of(program, inputs, labels);
    return on_own_thread(options.threads, [&] { return step(parts, updates); });
  }

  ReferenceStep step(Parts& parts, bool updates) {
    const std::vector<double> counts =
        options.loss_weight ? loss_counts(options.loss_weight, parts) : std::vector<double>();
    // Taken out, so that it is dropped if this throws.
    std::optional<Unfinished> update = std::exchange(unfinished, std::nullopt);
    UpdateNumbers numbers{.run = updates_made() + 1, .groups = {}};
    if (updates) {  // refuses groups of which none trains before a forward changes buffers
      numbers.groups = groups.begin(updates_made(), set_frozen);
    }
    if (!update) {
      update.emplace(Unfinished{.first_samples = parts.first_samples,
                                .loss_unit = counts.empty() ? 1.0 : counts.front(),
                                .parts = {},
                                .losses = {},
                                .counts = {}});
      for (StageRuntime& stage : stages) {
        stage.buckets.begin_step();
      }
      std::ranges::for_each(partials, begin);
    }
    double scale_of_batch = scale_of(parts, update->first_samples);
    if (!counts.empty()) {
      parts.weights = relative_weights(counts, update->loss_unit);
      scale_of_batch = 1.0;
    }
    const PartRuns runs = runs_of(parts, scale_of_batch);
    const bool is_first = update->losses.empty();
    ReferenceStep result;
    {
      const CountingScope counting(update->counts);
      result.losses = run(parts, runs, update->losses.size());
    }
    sum_partials(is_first, updates);
    result.mean_loss = mean_loss(result.losses, runs);
    append(update->parts, runs, static_cast<int>(result.losses.size()));
    update->losses.insert(update->losses.end(), result.losses.begin(), result.losses.end());
    if (!updates) {
      unfinished = std::move(update);
      return result;
    }
    result.losses = std::move(update->losses);
    result.counts = update->counts.read();
    result.mean_loss = mean_loss(result.losses, update->parts);
    result.learning_rate =
        rate_factor *
        (set_rate ? *set_rate
                  : learning_rate_at(options.learning_rate, base_learning_rate(optimizer), done));
    const double weight = total_weight(update->parts, static_cast<int>(result.losses.size()));
    this->update(weight, numbers, result);
    return result;
  }

  /// Adds up the gradients of the batch and returns the losses. `before`: number of losses of
  /// earlier batches of the update.
  std::vector<double> run(const Parts& parts, const PartRuns& runs, std::size_t before) {
    const CompiledProgram& compiled = program.compiled();
    if (!compiled.stage_graph.microbatch_sizes().empty()) {
      const auto batches = static_cast<std::int64_t>(before) / losses_of(compiled);
      return SizedPass(compiled, stages, parts)
          .run({.seed = seed, .step = done, .microbatch = batches * compiled.microbatches},
               factor());
    }
    std::vector<double> losses(parts.inputs.size());
    for (const std::int32_t number : order) {
      const auto m = static_cast<std::size_t>(number);
      const auto shape = parts.shapes.empty() ? nullptr : parts.shapes[m];
      const RandomKey key{.seed = seed,
                          .step = done,
                          .microbatch = static_cast<std::int64_t>(before + m),
                          .shape = shape == nullptr ? 0 : shape->random};
      const at::Tensor loss = forward(stages_for(shape), parts.inputs[m], parts.labels[m], key);
      losses[m] = loss.item<double>();
      differentiate(loss, number, part_of(runs, m).weight);
    }
    return losses;
  }

  /// Forgets the sums of a stage.
  static void begin(std::vector<Round>& stage) {
    for (Round& round : stage) {
      for (std::vector<Partial>& rank : round) {
        std::ranges::for_each(rank, [](Partial& copy) { copy.adder->begin(); });
      }
    }
  }

  static at::Tensor forward(const std::vector<StageRuntime>& stages,
                            const Tensors& inputs,
                            const Tensors& labels,
                            const RandomKey& key) {
    const at::AutoGradMode grad(true);
    std::map<ValueId, at::Tensor> crossing;
    at::Tensor loss;
    for (const StageRuntime& stage : stages) {
      Tensors arguments;
      for (const StageInput& input : stage.program->inputs) {
        switch (input.source) {
          case StageInput::Source::Model:
            arguments.push_back(inputs[static_cast<std::size_t>(input.position)]);
            break;
          case StageInput::Source::Label:
            arguments.push_back(labels[static_cast<std::size_t>(input.position)]);
            break;
          case StageInput::Source::Stage:
            arguments.push_back(from_memory_order(input.owes_gradient
                                                      ? Boundary::apply(crossing.at(input.value))
                                                      : crossing.at(input.value).detach(),
                                                  stage.program->at(input.value).order));
            break;
        }
      }
      run_chunks(stage, arguments, key, crossing, loss);
    }
    return loss;
  }

  /// Runs the stage's chunks. Adds their results to `crossing`, and sets `loss` if the stage
  /// computes it.
  static void run_chunks(const StageRuntime& stage,
                         const Tensors& arguments,
                         const RandomKey& key,
                         std::map<ValueId, at::Tensor>& crossing,
                         at::Tensor& loss) {
    std::vector<Tensors> made;
    for (const StageRuntime::BoundChunk& chunk : stage.chunks) {
      Tensors inputs;
      for (const auto& [from, position] : chunk.inputs) {
        inputs.push_back(from ? made[*from][position] : arguments[position]);
      }
      const ChunkResult result = chunk.interpreter.run(inputs, stage.state, key);
      for (std::size_t i = 0; i < result.outputs.size(); ++i) {
        if (chunk.outputs[i]) {
          const ValueId value = stage.program->outputs[*chunk.outputs[i]].value;
          crossing[value] =
              to_memory_order(result.outputs[i], stage.program->at(value).order);  // keeps SP-1
        }
      }
      loss = result.loss.defined() ? result.loss : loss;
      made.push_back(result.outputs);
    }
  }

  void differentiate(const at::Tensor& loss, std::int32_t microbatch, double weight) {
    Saved saved{.leaves = {}, .outputs = {}, .loss = loss};
    const Tensors gradients = backward(saved, {}, edges, {}, factor()).parameters;
    auto next = gradients.begin();
    for (std::size_t s = 0; s < stages.size(); ++s) {
      const auto count = static_cast<std::ptrdiff_t>(stages[s].buckets.gradient_edges().size());
      const Tensors of_stage(next, next + count);
      if (!partials.empty()) {
        accumulate(partials[s], of_stage, microbatch, weight);
      } else if (count > 0) {
        stages[s].buckets.accumulate(of_stage, weight);
      }
      next += count;
    }
  }

  static void accumulate(std::vector<Round>& rounds,
                         const Tensors& gradients,
                         std::int32_t microbatch,
                         double weight) {
    for (Round& round : rounds) {
      for (std::vector<Partial>& rank : round) {
        for (Partial& copy : rank) {
          if (copy.microbatches.contains(microbatch)) {
            copy.adder->add(copy.all, gradients, weight);
          }
        }
      }
    }
  }

  /// Adds the copies of each rank, and then the ranks (SU-1). Returns the sum.
  static const Tensors& sum_of(Round& round) {
    for (std::vector<Partial>& rank : round) {
      for (std::size_t copy = 1; copy < rank.size(); ++copy) {
        add_up(rank.front().sums, rank[copy].sums);
      }
    }
    for (std::size_t rank = 1; rank < round.size(); ++rank) {
      add_up(round.front().front().sums, round[rank].front().sums);
    }
    return round.front().front().sums;
  }

  /// Stages that sum in rounds do so in each batch of an update, others in the last.
  void sum_partials(bool is_first, bool is_last) {
    const at::NoGradGuard no_grad;
    for (std::size_t s = 0; s < partials.size(); ++s) {
      const bool by_batch = options.sums->in_rounds.contains(stages[s].program->id.index());
      if (!by_batch && !is_last) {
        continue;
      }
      const bool replaces = is_first || !by_batch;
      const Tensors& living = stages[s].buckets.living_gradients();
      for (std::size_t round = 0; round < partials[s].size(); ++round) {
        const Tensors& sum = sum_of(partials[s][round]);
        for (std::size_t i = 0; i < living.size(); ++i) {
          if (replaces && round == 0) {
            living[i].copy_(sum[i]);
          } else {
            living[i].add_(sum[i]);
          }
        }
      }
      begin(partials[s]);
    }
  }

  [[nodiscard]] double factor() const { return options.loss_scaling ? scale.factor : 1.0; }

  [[nodiscard]] std::int64_t updates_made() const { return done - scale.skipped; }

  /// `weight`: of all microbatches of the update.
  void update(double weight, const UpdateNumbers& numbers, ReferenceStep& result) {
    const double divisor = weight * factor();
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::minutes(1);  // it waits only for itself
    for (const auto& tie : ties) {
      tie->start(collective, {.submission = Submission(done)}, {});
      tie->finish(deadline);
    }
    const double clip = set_clip.value_or(options.clip.value_or(kUnclipped));
    const double most = largest_applied(clip, options.clip_value);
    Ballot ballot{.model_parameters =
                      static_cast<std::int64_t>(program.compiled().graph.parameters.size())};
    for (StageRuntime& stage : stages) {
      for (const SquaredNorm& norm :
           stage.buckets.squared_norms(divisor, /*whole=*/true, numbers, most)) {
        ballot.squared_norms.push_back(norm);
      }
    }
    const VoteResult verdict =
        vote(collective, Group{{Rank(0)}}, {.submission = Submission(done)}, ballot, deadline);
    result.gradient_norm = verdict.total_norm;
    result.skipped = !verdict.all_finite && factor() > 1.0;
    clipped = clip < kUnclipped || options.clip_value;
    if (!result.skipped) {
      refuse_non_finite(stages, verdict, Step(done));
      for (StageRuntime& stage : stages) {
        stage.buckets.update(result.learning_rate,
                             {.weight = divisor,
                              .clip = clip_scale(clip, verdict.total_norm),
                              .most = options.clip_value},
                             numbers);
      }
      groups.end(updates_made());
    }
    if (options.loss_scaling) {
      scale = after(scale, result.skipped, *options.loss_scaling);
    }
    ++done;
  }
};

Reference::Reference(Program program, Optimizer optimizer, ReferenceOptions options)
    : impl_(std::make_unique<Impl>(std::move(program), optimizer, std::move(options))) {}

Reference::~Reference() = default;

ReferenceStep Reference::step(const Batch& inputs, const Batch& labels) {
  return impl_->on_batch(inputs, labels, true);
}

ReferenceStep Reference::accumulate(const Batch& inputs, const Batch& labels) {
  return impl_->on_batch(inputs, labels, false);
}

std::vector<StateTensor> Reference::state() const {
  std::vector<StateTensor> result;
  for (const StageRuntime& stage : impl_->stages) {
    stage.append_state(result);
  }
  return result;
}

std::vector<StateTensor> Reference::gradients() const {
  if (impl_->clipped && !impl_->options.keep_gradients) {
    throw Error(Errc::UsageArgument,
                "clipping has changed the gradients: set ReferenceOptions::keep_gradients before");
  }
  std::vector<StateTensor> result;
  for (const StageRuntime& stage : impl_->stages) {
    for (StateTensor& gradient : stage.buckets.gradients()) {
      result.push_back(std::move(gradient));
    }
  }
  return result;
}

std::int64_t Reference::steps() const {
  return impl_->done;
}

void Reference::set_steps(std::int64_t steps,
                          const std::optional<LossScale>& scale,
                          const std::optional<FrozenUpdates>& frozen) {
  impl_->done = steps;
  impl_->scale = first_scale(impl_->options.loss_scaling, scale);
  impl_->groups.replace(steps - impl_->scale.skipped, frozen);
}

void Reference::set_learning_rate(std::optional<double> rate) {
  if (rate) {
    check_rate(*rate, "a learning rate");
  }
  impl_->set_rate = rate;
}

void Reference::set_clip(std::optional<double> norm) {
  if (norm) {
    check_clip(*norm, impl_->options.clip_value);
  }
  impl_->set_clip = norm;
}

void Reference::set_frozen(std::string_view group, std::optional<bool> frozen) {
  impl_->set_frozen[group_to_freeze(impl_->options.groups, group, frozen)] = frozen;
}

void Reference::scale_learning_rate(double factor) {
  check_rate(factor, "a factor of the learning rate");
  impl_->rate_factor = factor;
}

}  // namespace stagecraft
