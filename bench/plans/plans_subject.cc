#include "stagecraft/bench/plans/plans_subject.h"

#include <filesystem>
#include <variant>

#include <ATen/ops/randint.h>

#include "stagecraft/bench/plans/train_models.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/train/models/work.h"

namespace stagecraft::bench {
namespace {

tools::ScheduleChoice choice_of(const std::optional<Cut>& cut, int stages, int microbatches) {
  const Schedule schedule = one_f_one_b(stages, microbatches);
  return {.schedule = schedule,
          .layout = Layout::of(schedule),
          .stages = stages,
          .microbatches = microbatches,
          .given = {},
          .cut = cut};
}

/// Returns the subject that `stagecraft train` makes of these options.
Subject subject_of(const std::string& name,
                   const std::string& own_cut,
                   const tools::TrainOptions& options) {
  const auto open = [options] { return tools::open_work(options, tools::memory_left()); };
  const auto work = open();
  const int microbatches = static_cast<int>(work->settled(options).microbatches.value());
  const tools::WorkBatch batch = work->batch(0, choice_of({}, 1, microbatches));
  return {.name = name,
          .own_cut = own_cut,
          .microbatches = microbatches,
          .compile =
              [=](const std::optional<Cut>& cut, int stages) {
                // A work compiles only once.
                return open()->compile(choice_of(cut, stages, microbatches));
              },
          .inputs = batch.inputs,
          .labels = batch.labels};
}

Subject large_vocabulary() {
  constexpr int kMicrobatches = 8, kSamples = 8;
  constexpr std::int64_t kVocabulary = 8192, kSequence = 64;
  const examples::LlamaOptions sizes{.vocabulary = kVocabulary,
                                     .layers = 4,
                                     .dim = 128,
                                     .heads = 4,
                                     .ffn = 344,
                                     .sequence = kSequence,
                                     .stages = 1,
                                     .seed = 0};
  const at::Tensor tokens =
      at::randint(kVocabulary, {kMicrobatches * kSamples, kSequence + 1}, at::kLong);
  const at::Tensor inputs = tokens.narrow(1, 0, kSequence).contiguous();
  const at::Tensor labels = tokens.narrow(1, 1, kSequence).contiguous();
  return {.name = "llama, 8192 words",
          .own_cut = "even cut",
          .microbatches = kMicrobatches,
          .compile =
              [=](const std::optional<Cut>& cut, int stages) {
                examples::LlamaOptions of = sizes;
                of.stages = cut ? 1 : stages;
                examples::Llama model(of);
                return compile(model,
                               {.inputs = {inputs},
                                .labels = {labels},
                                .loss = examples::next_token_loss,
                                .microbatches = kMicrobatches,
                                .cut = cut.value_or(AtMarkers{})});
              },
          .inputs = {inputs},
          .labels = {labels}};
}

}  // namespace

std::vector<std::string> subject_names() {
  std::vector<std::string> names{"words", "towers"};
  const std::vector<std::string> models = names_of_train_models();
  names.insert(names.end(), models.begin(), models.end());
  return names;
}

Subject subject_named(const std::string& name) {
  if (name == "words") {
    return large_vocabulary();
  }
  if (name == "towers") {
    Subject towers = subject_of_model("clip", {"--layers", "4", "--patch", "4", "--seq", "16"});
    towers.name = "clip, 64 patches, 16 bytes";
    return towers;
  }
  return subject_of_model(name, {});
}

Subject subject_of_model(const std::string& model, const std::vector<std::string>& options) {
  return subject_of(model, "even cut", train_options(model, options));
}

Subject subject_of_file(const std::string& model, const std::string& data) {
  const std::filesystem::path path(model);
  return subject_of((path.parent_path().filename() / path.filename()).string(),
                    "balanced cut",
                    std::get<tools::TrainOptions>(
                        tools::parse_train_options({"--model-file", model, "--data", data})));
}

}  // namespace stagecraft::bench
