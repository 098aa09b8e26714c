#include "stagecraft/tools/train/job.h"

#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/examples/models/llama.h"

namespace stagecraft::tools {
namespace {

/// A run of hours must not end with a place that was never there.
void check_place_for(const char* option, const std::string& file) {
  std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty()) {
    folder = ".";
  }
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(folder, ignored);
  if (!is_folder || access(folder.c_str(), W_OK) != 0) {
    throw Error(Errc::UsageFile,
                fmt::format("{} expects a file in a folder that can be written, found {} '{}'; "
                            "make the folder or name another file",
                            option,
                            is_folder ? "the protected folder" : "no folder",
                            folder.string()));
  }
  if (std::filesystem::is_directory(file, ignored)) {
    throw Error(
        Errc::UsageFile,
        fmt::format("{} expects a file, found the folder '{}'; name a file in it", option, file));
  }
}

examples::Llama make_model(const TrainOptions& o,
                           std::int64_t vocabulary,
                           const ScheduleChoice& choice) {
  return examples::Llama(examples::LlamaOptions{.vocabulary = vocabulary,
                                                .layers = choice.layers,
                                                .dim = o.dim,
                                                .heads = o.heads,
                                                .ffn = o.ffn,
                                                .sequence = o.sequence,
                                                .stages = choice.stages,
                                                .seed = o.seed});
}

}  // namespace

std::int64_t TrainJob::sequences_per_step() const {
  return options.microbatch_size * choice.microbatches;
}

std::int64_t TrainJob::tokens_per_step() const {
  return sequences_per_step() * options.sequence;
}

TrainJob make_job(const TrainOptions& options) {
  if (options.save) {
    check_place_for("--save", *options.save);
  }
  if (options.trace) {
    check_place_for("--trace", *options.trace);
  }
  ByteText text = ByteText::read(options.text, options.sequence);
  ScheduleChoice choice = choose_schedule(options);
  examples::Llama model = make_model(options, text.vocabulary(), choice);
  const TextBatch example =
      text.batch(options.seed, 0, options.microbatch_size * choice.microbatches);
  Program program = compile(model,
                            {.inputs = {example.tokens},
                             .labels = {example.targets},
                             .loss = examples::next_token_loss,
                             .microbatches = choice.microbatches});
  return {options, std::move(text), std::move(choice), std::move(program)};
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
