#include "stagecraft/tools/train/job.h"

#include <limits>
#include <utility>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/plan/planned_bytes.h"
#include "stagecraft/compiler/replicate.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/tools/train/llama_size.h"
#include "stagecraft/tools/train/places.h"
#include "stagecraft/tools/train/threads.h"

namespace stagecraft::tools {
namespace {

examples::LlamaOptions model_options(const TrainOptions& o,
                                     std::int64_t vocabulary,
                                     const ScheduleChoice& choice) {
  return {.vocabulary = vocabulary,
          .layers = choice.layers,
          .dim = o.dim,
          .heads = o.heads,
          .ffn = o.ffn,
          .sequence = o.sequence,
          .stages = choice.stages,
          .seed = o.seed};
}

/// Read in growing pieces, a text takes up to three times its bytes for a moment.
double most_for_the_text() {
  const std::vector<MemoryLimit> limits = memory_limits(/*threads=*/0);
  return limits.empty() ? std::numeric_limits<double>::infinity() : limits.front().bytes / 3;
}

/// Judged before the model is built, as building it may take more memory than there is. Of a step
/// nothing is certain yet, but that one microbatch goes through it; or through one stage after the
/// other, where these are recomputed.
void check_least(const TrainOptions& options,
                 const ScheduleChoice& choice,
                 const examples::LlamaOptions& model,
                 const std::vector<MemoryLimit>& limits) {
  const double kept = least_activation_bytes(model, options.microbatch_size);
  const bool recomputes = options.recompute != Recompute::nothing();
  const MemoryBill least(
      options, choice, model, recomputes ? kept / static_cast<double>(choice.stages) : kept);
  check_fits(least, options.dry_run ? least.to_compile() : least.to_run(), limits);
}

Program compile_model(const TrainOptions& options,
                      const ScheduleChoice& choice,
                      const examples::LlamaOptions& sizes,
                      const ByteText& text) {
  examples::Llama model(sizes);
  const TextBatch example =
      text.batch(options.seed, 0, options.microbatch_size * choice.microbatches);
  return compile(model,
                 {.inputs = {example.tokens},
                  .labels = {example.targets},
                  .loss = examples::next_token_loss,
                  .microbatches = choice.microbatches,
                  .recompute = options.recompute});
}

double planned_activation_bytes(const Program& program, const Plan& plan) {
  double bytes = 0.0;
  for (const RankPlan& rank : plan.ranks) {
    bytes += static_cast<double>(peak_activation_bytes(program.compiled(), rank));
  }
  return bytes;
}

}  // namespace

std::int64_t TrainJob::sequences_per_step() const {
  return options.microbatch_size * choice.microbatches;
}

std::int64_t TrainJob::tokens_per_step() const {
  return sequences_per_step() * options.sequence;
}

TrainJob make_job(const TrainOptions& options, Console& console) {
  check_places(options);
  ByteText text = ByteText::read(options.text, options.sequence, most_for_the_text());
  ScheduleChoice choice = choose_schedule(options, console);
  const examples::LlamaOptions sizes = model_options(options, text.vocabulary(), choice);
  const int threads = options.dry_run ? 0 : threads_to_run(options, choice);
  check_threads(threads);
  std::vector<MemoryLimit> limits = memory_limits(threads);
  if (!options.force) {
    check_least(options, choice, sizes, limits);
  }
  Program program = compile_model(options, choice, sizes, text);
  Program laid_out = replicate(program, choice.layout);
  Plan plan = lower_schedule(laid_out, choice.schedule, choice.layout, /*training=*/true);
  MemoryBill memory(options, choice, sizes, planned_activation_bytes(laid_out, plan));
  if (!options.force && !options.dry_run) {
    check_fits(memory, memory.to_run(), limits);
  }
  return {options,
          std::move(text),
          std::move(choice),
          std::move(program),
          std::move(laid_out),
          std::move(plan),
          std::move(memory),
          std::move(limits)};
}

Optimizer make_optimizer(const TrainOptions& options) {
  if (options.optimizer == OptimizerKind::Sgd) {
    return Sgd{.lr = options.rate,
               .momentum = options.momentum,
               .weight_decay = options.weight_decay.value_or(0.0)};
  }
  return AdamW{.lr = options.rate, .weight_decay = options.weight_decay.value_or(0.1)};
}

LearningRate make_learning_rate(const TrainOptions& options) {
  return {.kind = options.rate_kind == RateKind::Cosine ? LearningRate::Kind::Cosine
                                                        : LearningRate::Kind::Constant,
          .warmup = options.warmup,
          .total_steps = options.steps};
}

}  // namespace stagecraft::tools
