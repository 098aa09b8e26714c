/// Tests a trainer with a schedule whose stages take microbatches of different sizes, on real
/// models, and its refusals.
#include <torch/torch.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/examples/models/clip.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kTrainerMicrobatches = 4;
constexpr std::int64_t kTrainerRows = 2;  // of a microbatch
const Optimizer kTrainerOptimizer = AdamW{.lr = 1e-2};

struct Model {
  Program program;
  Batch inputs, labels;
};

Model llama() {
  torch::manual_seed(51);
  const torch::Tensor tokens = torch::randint(32, {kTrainerMicrobatches * kTrainerRows, 9});
  const Batch inputs{tokens.slice(1, 0, 8).contiguous()};
  const Batch labels{tokens.slice(1, 1, 9).contiguous()};
  examples::Llama module(examples::LlamaOptions{
      .vocabulary = 32, .layers = 3, .dim = 16, .heads = 2, .ffn = 24, .sequence = 8, .stages = 3});
  return {compile(module,
                  {.inputs = inputs,
                   .labels = labels,
                   .loss = examples::next_token_loss,
                   .microbatches = kTrainerMicrobatches}),
          inputs,
          labels};
}

/// Has a loss that compares all samples of a microbatch with each other.
Model clip() {
  torch::manual_seed(52);
  const Batch inputs{torch::randn({kTrainerMicrobatches * kTrainerRows, 3, 8, 8}),
                     torch::randint(255, {kTrainerMicrobatches * kTrainerRows, 6})};
  examples::Clip module(examples::ClipOptions{.image = 8,
                                              .patch = 4,
                                              .sequence = 6,
                                              .dim = 16,
                                              .heads = 2,
                                              .ffn = 24,
                                              .embed = 8,
                                              .stages = 3});
  return {compile(module,
                  {.inputs = inputs,
                   .loss = examples::contrastive_loss,
                   .microbatches = kTrainerMicrobatches}),
          inputs,
          {}};
}

Schedule schedule_of(const Model& model, const std::vector<int>& sizes) {
  StageGraph graph = model.program.stage_graph();
  graph.set_microbatch_sizes(sizes);
  return kfkb(graph, kTrainerMicrobatches, {1});
}

void check_weights(Trainer& trainer, const Reference& reference, double tolerance) {
  std::map<std::string, at::Tensor> found;
  for (const auto& [name, tensor] : trainer.state_dict()) {
    found[state_name(kWeight, name)] = tensor;
  }
  for (const StateTensor& expected : reference.state()) {
    if (expected.name.starts_with(kWeight)) {
      INFO(expected.name);
      const at::Tensor& weight = found.at(expected.name);
      CHECK((tolerance == 0 ? torch::equal(weight, expected.tensor)
                            : torch::allclose(weight, expected.tensor, tolerance, tolerance)));
    }
  }
}

/// Makes two updates, the second of two batches.
void check_training(const Model& model,
                    const std::vector<int>& sizes,
                    bool loss_is_a_mean,
                    bool mirror = false) {
  CAPTURE(sizes, mirror);
  Trainer trainer(
      model.program, schedule_of(model, sizes), kTrainerOptimizer, {.seed = 5, .mirror = mirror});
  Reference same(resize(model.program, sizes), kTrainerOptimizer, {.seed = 5});
  Reference one_size(model.program, kTrainerOptimizer, {.seed = 5});
  const auto check_step = [&](const StepResult& found, const ReferenceStep& expected) {
    CHECK(found.losses == expected.losses);
    CHECK(found.mean_loss == expected.mean_loss);
    CHECK(found.losses.size() % static_cast<std::size_t>(kTrainerMicrobatches / sizes.back()) == 0);
  };
  check_step(trainer.step(model.inputs, model.labels).get(), same.step(model.inputs, model.labels));
  const ReferenceStep uniform = one_size.step(model.inputs, model.labels);
  (void)trainer.accumulate(model.inputs, model.labels).get();
  (void)same.accumulate(model.inputs, model.labels);
  const StepResult last = trainer.step(model.inputs, model.labels).get();
  check_step(last, same.step(model.inputs, model.labels));
  check_weights(trainer, same, 0);
  if (loss_is_a_mean) {
    (void)one_size.accumulate(model.inputs, model.labels);
    const ReferenceStep second = one_size.step(model.inputs, model.labels);
    CHECK(last.mean_loss == Catch::Approx(second.mean_loss).epsilon(1e-4));
    CHECK(uniform.losses.size() == kTrainerMicrobatches);
  }
}

TEST_CASE("a Llama trains with stages of different microbatch sizes", "[executor][sizes][models]") {
  const Model model = llama();
  check_training(model, {1, 2, 4}, true);
  check_training(model, {2, 1, 2}, true);
  check_training(model, {4, 2, 1}, true);
}

TEST_CASE("ranks whose stages have sizes mirror each other", "[executor][sizes][mirror]") {
  const Model model = llama();
  check_training(model, {1, 2, 4}, true, /*mirror=*/true);
  check_training(model, {2, 1, 2}, true, /*mirror=*/true);
}

TEST_CASE("the towers of a CLIP take microbatches of other sizes than its head",
          "[executor][sizes][models]") {
  const Model model = clip();
  check_training(model, {1, 2, 4}, false);
  check_training(model, {4, 2, 1}, false);
  check_training(model, {1, 1, 2}, false);
}

TEST_CASE("a trainer with sizes refuses evaluations and batches of other shapes",
          "[executor][sizes]") {
  const Model model = llama();
  Trainer trainer(model.program, schedule_of(model, {1, 2, 1}), kTrainerOptimizer);
  const std::vector<LabeledBatch> one_batch{{model.inputs, model.labels}};
  const auto check_refused = [](auto&& evaluation) {
    CHECK_THAT(refusal(evaluation),
               ContainsSubstring("an evaluation has one size") &&
                   ContainsSubstring("whose schedule has no sizes"));
  };
  check_refused([&] { (void)trainer.predict(model.inputs); });
  check_refused([&] { (void)trainer.evaluate(model.inputs, model.labels); });
  check_refused([&] { (void)trainer.evaluate(one_batch); });
  const auto half = [](const Batch& batch) {
    return Batch{batch[0].tensor.slice(0, 0, batch[0].tensor.size(0) / 2).contiguous()};
  };
  CHECK_THAT(refusal([&] { (void)trainer.step(half(model.inputs), half(model.labels)); },
                     Errc::CompileShape),
             ContainsSubstring("pass the same shape"));
  CHECK(trainer.step(model.inputs, model.labels).get().losses.size() == kTrainerMicrobatches);
}

}  // namespace
}  // namespace stagecraft
