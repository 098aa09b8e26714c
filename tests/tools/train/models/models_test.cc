/// Tests the models of `stagecraft train`, as pipelines and against their papers.

#include <functional>

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/examples/models/clip.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/examples/models/moe.h"
#include "stagecraft/examples/models/unet.h"
#include "stagecraft/examples/models/vit.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::examples {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kModelMicrobatches = 4;
constexpr std::int64_t kBatch = 2 * kModelMicrobatches;
constexpr int kSteps = 4;

LlamaOptions two_layer_llama() {
  return {
      .vocabulary = 20, .layers = 3, .dim = 16, .heads = 2, .ffn = 24, .sequence = 8, .stages = 3};
}

VitOptions small_vit() {
  return {.image = 8,
          .patch = 4,
          .channels = 2,
          .classes = 3,
          .layers = 3,
          .dim = 16,
          .heads = 2,
          .ffn = 24,
          .dropout = 0.1,
          .stages = 3};
}

MoeOptions small_moe() {
  return {.vocabulary = 20,
          .layers = 3,
          .dim = 16,
          .heads = 2,
          .ffn = 24,
          .experts = 3,
          .capacity_factor = 1.0,
          .sequence = 8,
          .stages = 3};
}

UnetOptions small_unet() {
  return {.image = 8, .channels = 2, .width = 8, .levels = 2, .blocks = 1, .heads = 2, .stages = 3};
}

ClipOptions small_clip() {
  return {.image = 8,
          .patch = 4,
          .channels = 2,
          .vocabulary = 20,
          .sequence = 6,
          .image_layers = 2,
          .text_layers = 1,
          .dim = 16,
          .heads = 2,
          .ffn = 24,
          .embed = 8};
}

at::Generator generator() {
  at::Generator made = at::detail::createCPUGenerator();
  made.set_current_seed(11);
  return made;
}

at::Tensor some_images() {
  return at::randn({kBatch, 2, 8, 8}, generator());
}
at::Tensor some_tokens(std::int64_t sequence) {
  return at::randint(20, {kBatch, sequence}, generator(), at::kLong);
}

/// Holds a model as it is compiled, and one batch of it.
struct Example {
  std::string name;
  std::function<Program(std::int64_t stages)> program;
  Batch inputs, labels;
};

template <class Holder, class Options>
Example example(std::string name, const Options& options, Batch inputs, Batch labels, Loss loss) {
  const auto program = [=](std::int64_t stages) {
    Options cut = options;
    cut.stages = stages;
    return compile(
        Holder(cut),
        {.inputs = inputs, .labels = labels, .loss = loss, .microbatches = kModelMicrobatches});
  };
  return {std::move(name), program, inputs, labels};
}

Example example_of(std::string_view name) {
  if (name == "llama") {
    return example<Llama>(
        "llama", two_layer_llama(), {some_tokens(8)}, {some_tokens(8)}, next_token_loss);
  }
  if (name == "vit") {
    const at::Tensor labels = at::arange(kBatch) % 3;
    return example<Vit>("vit", small_vit(), {some_images()}, {labels}, classification_loss);
  }
  if (name == "moe") {
    return example<Moe>(
        "moe", small_moe(), {some_tokens(8)}, {some_tokens(8)}, moe_loss(small_moe().balance));
  }
  if (name == "unet") {
    const at::Tensor noise = at::randn({kBatch, 2, 8, 8}, generator());
    const at::Tensor time = at::arange(kBatch) * 12;
    const at::Tensor noisy = noised(at::ones({kBatch, 2, 8, 8}), time, noise, 100);
    return example<Unet>("unet", small_unet(), {noisy, time}, {noise}, noise_loss);
  }
  return example<Clip>("clip", small_clip(), {some_images(), some_tokens(6)}, {}, contrastive_loss);
}

StateDict weights_of(const Reference& reference) {
  constexpr std::string_view kPrefix = "weight:";
  StateDict weights;
  for (const StateTensor& state : reference.state()) {
    if (state.name.starts_with(kPrefix)) {
      weights.emplace_back(state.name.substr(kPrefix.size()), state.tensor);
    }
  }
  return weights;
}

StateDict weights_of(Trainer& trainer) {
  StateDict weights;
  for (const NamedTensor& parameter : trainer.module_state().parameters) {
    weights.emplace_back(parameter.name, parameter.tensor);
  }
  return weights;
}

void check_same_bits(StateDict found, StateDict expected) {
  const auto name = [](const auto& item) { return item.first; };
  std::ranges::sort(found, {}, name);
  std::ranges::sort(expected, {}, name);
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(found[i].first);
    CHECK(found[i].first == expected[i].first);
    CHECK(at::equal(found[i].second, expected[i].second));
  }
}

/// Returns the losses of the steps.
std::vector<double> check_equal_to_one_process(const Example& model,
                                               const Program& program,
                                               const Schedule& schedule) {
  check(program, schedule).or_throw();
  const Optimizer optimizer = AdamW{.lr = 1e-2};
  Trainer trainer(
      Cluster::local(program.stage_graph().size()), program, schedule, optimizer, {.seed = 5});
  Reference reference(program, optimizer, {.seed = 5, .threads = 1});
  std::vector<double> losses;
  for (int i = 0; i < kSteps; ++i) {
    const StepResult pipelined = trainer.step(model.inputs, model.labels).get();
    const ReferenceStep expected = reference.step(model.inputs, model.labels);
    CHECK(pipelined.losses == expected.losses);
    CHECK(pipelined.gradient_norm == expected.gradient_norm);
    losses.push_back(pipelined.mean_loss);
  }
  check_same_bits(weights_of(trainer), weights_of(reference));
  return losses;
}

std::vector<StageGraph::Edge> edges_of(std::string_view name, std::int64_t stages) {
  return example_of(name).program(stages).stage_graph().edges();
}

template <class Holder, class Options>
void check_size(const Options& options, double expected) {
  double bytes = 0;
  for (const at::Tensor& parameter : Holder(options)->parameters()) {
    bytes += static_cast<double>(parameter.nbytes());
  }
  CHECK(expected == bytes);
}

/// Compares the weights of `options` in one stage, in `stages`, and of another seed.
template <class Holder, class Options>
void check_weights(Options options, std::int64_t stages) {
  options.stages = 1;
  const Holder one(options);
  options.stages = stages;
  const Holder cut(options);
  options.seed = 1;
  const Holder reseeded(options);
  const auto names = one->named_parameters();
  REQUIRE(cut->parameters().size() == names.size());
  for (const auto& item : cut->named_parameters()) {
    INFO(item.key());
    CHECK(at::equal(item.value(), names[item.key()]));
    CHECK((item.value().dim() <= 1) ==
          at::equal(item.value(), reseeded->named_parameters()[item.key()]));
  }
}

}  // namespace

TEST_CASE("each model trains by a pipeline as in one process, bit by bit, and learns",
          "[tools][models]") {
  const std::string name = GENERATE("llama", "vit", "moe", "unet", "clip");
  const int stages = GENERATE(2, 3);
  CAPTURE(name, stages);
  const Example model = example_of(name);
  const Program program = model.program(stages);
  const std::vector<double> losses =
      check_equal_to_one_process(model, program, one_f_one_b(stages, kModelMicrobatches));
  CHECK(losses.back() < losses.front());
  if (!program.stage_graph().is_chain()) {
    const Schedule on_graph = one_f_one_b(program.stage_graph(), kModelMicrobatches);
    CHECK(check_equal_to_one_process(model, program, on_graph) == losses);
  }
}

TEST_CASE("no cut of a model changes a bit", "[tools][models]") {
  const std::string name = GENERATE("llama", "vit", "moe", "unet", "clip");
  CAPTURE(name);
  const Example model = example_of(name);
  const auto trained = [&](int stages) {
    Reference reference(model.program(stages), AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
    for (int i = 0; i < kSteps; ++i) {
      static_cast<void>(reference.step(model.inputs, model.labels));
    }
    return weights_of(reference);
  };
  const StateDict whole = trained(1);
  check_same_bits(trained(2), whole);
  check_same_bits(trained(3), whole);
}

TEST_CASE("stages of CLIP and of the U-Net are no chain, those of the others are",
          "[tools][models]") {
  using Edges = std::vector<StageGraph::Edge>;
  CHECK(edges_of("vit", 3) == Edges{{0, 1}, {1, 2}});
  CHECK(edges_of("moe", 3) == Edges{{0, 1}, {1, 2}});
  CHECK(edges_of("clip", 2) == Edges{{0, 1}});
  CHECK(edges_of("clip", 3) == Edges{{0, 2}, {1, 2}});
  CHECK(edges_of("clip", 4) == Edges{{0, 1}, {1, 3}, {2, 3}});  // the longer tower is cut
  CHECK(edges_of("unet", 5) == Edges{{0, 1}, {0, 4}, {1, 2}, {1, 3}, {2, 3}, {3, 4}});
}

TEST_CASE("weights of each model depend on seed and layer, not on the cut", "[tools][models]") {
  check_weights<Vit>(small_vit(), 3);
  check_weights<Moe>(small_moe(), 3);
  check_weights<Unet>(small_unet(), 5);
  check_weights<Clip>(small_clip(), 4);
}

TEST_CASE("the bytes of each model are known before it is built", "[tools][models]") {
  check_size<Llama>(two_layer_llama(), weight_bytes(two_layer_llama()));
  check_size<Vit>(small_vit(), weight_bytes(small_vit()));
  check_size<Moe>(small_moe(), weight_bytes(small_moe()));
  check_size<Clip>(small_clip(), weight_bytes(small_clip()));
  UnetOptions unet = small_unet();
  unet.levels = GENERATE(1, 2, 3);
  unet.blocks = GENERATE(1, 2);
  check_size<Unet>(unet, weight_bytes(unet));
}

TEST_CASE("the least that a microbatch keeps is no more than it keeps, and not far from it",
          "[tools][models]") {
  const auto check_least = [](std::string_view name, double least) {
    INFO(name);
    double kept = 0;
    for (const StageProgram& stage : example_of(name).program(1).compiled().partition.stages) {
      kept += static_cast<double>(stage.saved_bytes);
    }
    CHECK(least <= kept);
    CHECK(least >= kept / 4);
  };
  check_least("llama", least_activation_bytes(two_layer_llama(), kBatch / kModelMicrobatches));
  check_least("vit", least_activation_bytes(small_vit(), kBatch / kModelMicrobatches));
  check_least("moe", least_activation_bytes(small_moe(), kBatch / kModelMicrobatches));
  check_least("unet", least_activation_bytes(small_unet(), kBatch / kModelMicrobatches));
  check_least("clip", least_activation_bytes(small_clip(), kBatch / kModelMicrobatches));
}

TEST_CASE("options that fit no model are refused", "[tools][models]") {
  const auto complaint = [](auto* holder, auto options, auto change) {
    change(options);
    return refusal([&] { std::remove_pointer_t<decltype(holder)> model(options); });
  };
  const auto vit = [&](auto change) { return complaint((Vit*)nullptr, small_vit(), change); };
  const auto moe = [&](auto change) { return complaint((Moe*)nullptr, small_moe(), change); };
  const auto unet = [&](auto change) { return complaint((Unet*)nullptr, small_unet(), change); };
  const auto clip = [&](auto change) { return complaint((Clip*)nullptr, small_clip(), change); };
  CHECK_THAT(vit([](auto& o) { o.patch = 3; }), ContainsSubstring("patches of 3"));
  CHECK_THAT(vit([](auto& o) { o.patch = 0; }), ContainsSubstring("patches of 0"));
  CHECK_THAT(vit([](auto& o) { o.heads = 3; }), ContainsSubstring("3 heads"));
  CHECK_THAT(vit([](auto& o) { o.heads = 0; }), ContainsSubstring("0 heads"));
  CHECK_THAT(vit([](auto& o) { o.classes = 0; }), ContainsSubstring("at least 1"));
  CHECK_THAT(vit([](auto& o) { o.dropout = 1; }), ContainsSubstring("dropout"));
  CHECK_THAT(vit([](auto& o) { o.stages = 4; }),
             ContainsSubstring("one layer; found 4 stages where at most 3 fit"));
  CHECK_THAT(moe([](auto& o) { o.experts = 1; }), ContainsSubstring("two experts; found 1"));
  CHECK_THAT(moe([](auto& o) { o.capacity_factor = 0; }), ContainsSubstring("capacity factor"));
  CHECK_THAT(moe([](auto& o) { o.balance = -1; }), ContainsSubstring("load-balance"));
  CHECK_THAT(moe([](auto& o) { o.heads = 16; }), ContainsSubstring("even width"));
  CHECK_THAT(moe([](auto& o) { o.stages = 0; }), ContainsSubstring("0 stages"));
  CHECK_THAT(unet([](auto& o) { o.width = 12; }),
             ContainsSubstring("multiple of 8, the groups of its norms; found 12"));
  CHECK_THAT(unet([](auto& o) { o.levels = 5; }), ContainsSubstring("image of 8 for 5 levels"));
  CHECK_THAT(unet([](auto& o) { o.levels = 17; }), ContainsSubstring("1 to 16"));
  CHECK_THAT(unet([](auto& o) { o.heads = 3; }), ContainsSubstring("heads divide"));
  CHECK_THAT(unet([](auto& o) { o.stages = 6; }),
             ContainsSubstring("6 stages where at most 5 fit"));
  CHECK_THAT(clip([](auto& o) { o.text_layers = 0; }), ContainsSubstring("at least 1"));
  CHECK_THAT(clip([](auto& o) { o.stages = 5; }),
             ContainsSubstring("the head; found 5 stages where at most 4 fit"));
}

TEST_CASE("experts take what they have room for, first choices first", "[tools][models][moe]") {
  CHECK(expert_capacity(8, 4, 1.25) == 5);
  CHECK(expert_capacity(8, 3, 1.0) == 6);  // 16 / 3, rounded up
  CHECK(expert_capacity(8, 2, 4.0) == 8);  // no more than there are tokens
  // Expert 0 is the first choice of three tokens, then the second choice of one.
  const at::Tensor probabilities =
      at::tensor({0.6, 0.3, 0.1, 0.5, 0.1, 0.4, 0.7, 0.2, 0.1, 0.4, 0.6, 0.0}, at::kDouble)
          .view({4, 3});
  const Routing routing = route(probabilities, 2);
  at::Tensor combine = at::zeros({4, 3, 2}, at::kDouble);
  combine[0][0][0] = 0.6 / 0.9;
  combine[0][1][1] = 0.3 / 0.9;  // after token 3, whose first choice it is
  combine[1][0][1] = 0.5 / 0.9;
  combine[1][2][0] = 0.4 / 0.9;
  combine[3][1][0] = 0.6 / 1.0;  // expert 0 is full; token 2 has no place at all
  CHECK(at::allclose(routing.combine, combine));
  CHECK(at::allclose(route(probabilities, 4).combine.sum({1, 2}), at::ones({4}, at::kDouble)));
  // Of 3 experts, 3/4, 1/4 and 0 of the tokens choose each first.
  const double mean[] = {2.2 / 4, 1.2 / 4};
  CHECK(routing.balance.item().toDouble() == Catch::Approx(3 * (0.75 * mean[0] + 0.25 * mean[1])));
}

TEST_CASE("a token that no expert has room for continues by its residual", "[tools][models][moe]") {
  const c10::NoGradGuard no_grad;
  MoeOptions options = small_moe();
  options.capacity_factor = 1e-9;  // one place for each of 3 experts
  MoeFeedForward experts(options);
  for (at::Tensor& parameter : experts->parameters()) {
    parameter.fill_(0.1);
  }
  const auto [answer, balance] = experts->forward(at::ones({1, 8, 16}));
  const at::Tensor some = answer[0].abs().sum(-1).gt(0);
  CHECK(some.sum().item().toInt() == 1);  // all tokens choose the same two
  CHECK(some[0].item().toBool());
  CHECK(balance.item().toDouble() == Catch::Approx(1));
}

TEST_CASE("the loss of a mixture has the sum of its layers' load-balance losses",
          "[tools][models][moe]") {
  Moe model(small_moe());
  const auto [logits, balance] = model->forward(some_tokens(8));
  CHECK(logits.sizes() == at::IntArrayRef({kBatch, 8, 20}));
  CHECK(balance.item().toDouble() > 2.5);  // about 1 for each of 3 layers
  const at::Tensor targets = some_tokens(8);
  CHECK(at::allclose(moe_loss(0.5)(logits, balance, targets),
                     next_token_loss(logits, targets) + 0.5 * balance));
}

TEST_CASE("a U-Net predicts an image of noise, for any kind of time", "[tools][models][unet]") {
  UnetOptions options{.image = 16, .channels = 3, .width = 8, .levels = 3, .blocks = 2, .heads = 4};
  Unet model(options);
  const at::Tensor noisy = at::randn({2, 3, 16, 16}, generator());
  const at::Tensor time = at::arange(2) * 50;
  const at::Tensor predicted = model->forward(noisy, time);
  CHECK(predicted.sizes() == noisy.sizes());
  CHECK(at::equal(predicted, model->forward(noisy, time.to(at::kFloat))));
  CHECK_FALSE(at::allclose(predicted, model->forward(noisy, time + 100)));
}

TEST_CASE("a diffusion begins with the image and ends in noise", "[tools][models][unet]") {
  const at::Tensor image = at::full({3, 1, 2, 2}, 2.0), noise = at::full({3, 1, 2, 2}, -1.0);
  const at::Tensor noisy = noised(image, at::tensor({0, 499, 999}), noise, 1000);
  CHECK(at::allclose(noisy[0], image[0], 1e-1, 1e-1));
  CHECK(at::allclose(noisy[2], noise[2], 1e-3, 1e-3));
  // Equation 17 at t / T = 0.5, to four digits: 0.4938 of the power is left.
  CHECK(noisy[1][0][0][0].item().toDouble() ==
        Catch::Approx(std::sqrt(0.4938) * 2 - std::sqrt(0.5062)).margin(1e-3));
  CHECK_THAT(refusal([&] { static_cast<void>(noised(image, at::arange(3), noise, 0)); }),
             ContainsSubstring("at least 1 step"));
}

TEST_CASE("the contrastive loss is that of its formula", "[tools][models][clip]") {
  const at::Tensor logits = at::randn({5, 5}, generator());
  double expected = 0;
  for (int dim = 0; dim < 2; ++dim) {
    expected -= at::log_softmax(logits, dim).diagonal().mean().item().toDouble() / 2;
  }
  CHECK(contrastive_loss(logits).item().toDouble() == Catch::Approx(expected));
}

TEST_CASE("CLIP scales cosines, and reads a text to its end token alone", "[tools][models][clip]") {
  const c10::NoGradGuard no_grad;
  Clip model(small_clip());
  at::Tensor tokens = at::ones({kBatch, 6}, at::kLong);
  tokens.select(1, 3).fill_(19);
  const at::Tensor logits = model->forward(some_images(), tokens);
  CHECK(logits.sizes() == at::IntArrayRef({kBatch, kBatch}));
  CHECK(logits.abs().max().item().toDouble() <= 1 / 0.07 + 1e-3);
  tokens.select(1, 5).fill_(7);  // after the end
  CHECK(at::equal(logits, model->forward(some_images(), tokens)));
  tokens.select(1, 2).fill_(7);
  CHECK_FALSE(at::equal(logits, model->forward(some_images(), tokens)));
}

}  // namespace stagecraft::examples
