/// Tests steps of other shapes than the compiled one: a last, smaller batch, and other lengths.
#include <unistd.h>

#include <filesystem>

#include <torch/torch.h>

#include "stagecraft/compiler/shapes/shape_captures.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kWords = 16, kWide = 8, kClasses = 3;

/// Reads rows of tokens of any length, in two stages, with dropout and its own statistic.
struct Reader : torch::nn::Module {
  torch::nn::Embedding embed{register_module("embed", torch::nn::Embedding(kWords, kWide))};
  torch::nn::Linear hidden{register_module("hidden", torch::nn::Linear(kWide, kWide))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWide})))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(kWide, kClasses))};
  torch::nn::Linear other{register_module("other", torch::nn::Linear(kWide, kWide))};
  torch::Tensor seen{register_buffer("seen", torch::zeros({kWide}))};
  double dropout = 0.0;
  std::int64_t other_below = 0;  ///< batches of fewer rows take another path
  std::int64_t throws_at = 0;    ///< rows

  torch::Tensor forward(const torch::Tensor& tokens) {
    const std::int64_t rows = tokens.size(0);
    const torch::Tensor h = stage("lower", [&] {
      TORCH_CHECK(rows != throws_at, "this module takes no ", rows, " rows");
      torch::Tensor x = torch::tanh(hidden(embed(tokens)));
      if (rows < other_below) {
        x = other(x);
      }
      return dropout > 0.0 ? torch::dropout(x, dropout, true) : x;
    });
    return stage("upper", [&] {
      seen.mul_(0.9).add_(h.detach().mean(c10::IntArrayRef{0, 1}));
      return head(norm(h).mean(1));
    });
  }
};

std::shared_ptr<Reader> reader() {
  torch::manual_seed(3);
  return std::make_shared<Reader>();
}

Data batch_of(std::int64_t rows, std::int64_t length, std::int64_t step) {
  const torch::Tensor tokens =
      (torch::arange(rows * length) * 7 + step * 5).remainder(kWords).view({rows, length});
  return {.inputs = {tokens}, .labels = {tokens.sum(1).remainder(kClasses)}};
}

Program compiled_reader(const std::shared_ptr<Reader>& model, int shapes = 8) {
  const Data example = batch_of(16, 5, 0);
  return compile(model,
                 {.inputs = example.inputs,
                  .labels = example.labels,
                  .loss = torch::nn::CrossEntropyLoss(),
                  .microbatches = kMicrobatches,
                  .shapes = shapes});
}

Trainer trainer_of(const Cluster& cluster, const Program& program) {
  return {cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2}, {.seed = 5}};
}

const std::vector<std::pair<std::int64_t, std::int64_t>> kBatches{
    {16, 5}, {13, 5}, {16, 5}, {9, 5}, {16, 7}, {8, 5}, {13, 5}};

TEST_CASE("steps of other shapes have the bits of one process, in threads and in processes",
          "[integration][shapes]") {
  const auto model = reader();
  model->dropout = 0.3;
  const Program program = compiled_reader(model);
  const bool processes = GENERATE(false, true);
  Trainer trainer = trainer_of(processes ? Cluster::spawn(2) : Cluster::local(2), program);
  Reference reference(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
  for (std::size_t i = 0; i < kBatches.size(); ++i) {
    CAPTURE(processes, i);
    const auto [rows, length] = kBatches[i];
    const Data batch = batch_of(rows, length, static_cast<std::int64_t>(i));
    const StepFuture step = trainer.step(batch.inputs, batch.labels);
    const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
    CHECK(step.get().losses == expected.losses);
    CHECK(step.get().mean_loss == expected.mean_loss);
    CHECK(testing::same_norm(step.get().gradient_norm, expected.gradient_norm));
  }
  StateDict trained = weights_of(trainer);
  std::erase_if(trained, [](const auto& w) { return w.first.starts_with("other"); });
  CHECK(same_bits(trained, weights_of(reference)));
  // Microbatches of 4, 3 and 2 rows, and of 4 longer ones.
  CHECK(program.shape_captures()->count() == 4);
}

/// Two stages on images.
struct Painter : torch::nn::Module {
  torch::nn::Conv2d wide{
      register_module("wide", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, kWide, 3).padding(1)))};
  torch::nn::GroupNorm norm{register_module("norm", torch::nn::GroupNorm(2, kWide))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(kWide, kClasses))};

  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor h = stage("lower", [&] { return torch::silu(wide(images)); });
    return stage("upper", [&] { return head(norm(h).mean({2, 3})); });
  }
};

TEST_CASE("PT-3: channels-last batches have the bits of one process, in threads and in processes",
          "[integration][shapes]") {
  const bool processes = GENERATE(false, true);
  const bool as_example = GENERATE(false, true);
  CAPTURE(processes, as_example);
  torch::manual_seed(3);
  const auto model = std::make_shared<Painter>();
  const torch::Tensor classes = torch::arange(16).remainder(kClasses);
  const auto images = [](bool channels_last) {
    const torch::Tensor all = torch::randn({16, 3, 8, 8});
    return channels_last ? all.contiguous(torch::MemoryFormat::ChannelsLast) : all;
  };
  const Program program = compile(model,
                                  {.inputs = {images(as_example)},
                                   .labels = {classes},
                                   .loss = torch::nn::CrossEntropyLoss(),
                                   .microbatches = kMicrobatches});
  const Schedule schedule = zb_h1(2, kMicrobatches);
  Trainer trainer(processes ? Cluster::spawn(2) : Cluster::local(2),
                  program,
                  schedule,
                  AdamW{.lr = 1e-2},
                  {.seed = 5});
  Reference reference(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
  for (const bool channels_last : {true, false, true}) {
    const torch::Tensor batch = images(channels_last);
    const ReferenceStep expected = reference.step({batch}, {classes});
    CHECK(trainer.step({batch}, {classes}).get().losses == expected.losses);
  }
  CHECK(program.shape_captures()->count() == 2);
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
  CHECK(trainer.predict({images(true)}).at(0).size(0) == 16);
}

TEST_CASE("PT-2: parts weigh by their samples: loss and gradient are the means over all samples",
          "[integration][shapes]") {
  const auto model = reader();
  const Program program = compiled_reader(model);
  Trainer trainer = trainer_of(Cluster::local(2), program);
  Reference reference(program, Sgd{.lr = 0.0}, {});
  const Data batch = batch_of(13, 5, 1);
  const torch::Tensor loss =
      torch::cross_entropy_loss(model->forward(batch.inputs[0].tensor), batch.labels[0].tensor);
  loss.backward();
  CHECK(std::abs(trainer.evaluate(batch.inputs, batch.labels) - loss.item<double>()) < 1e-6);
  const ReferenceStep step = reference.step(batch.inputs, batch.labels);
  REQUIRE(step.losses.size() == 4);
  const double others = step.losses[1] + step.losses[2] + step.losses[3];
  CHECK(std::abs(step.mean_loss - (4 * step.losses[0] + 3 * others) / 13) < 1e-12);
  int compared = 0;
  for (const auto& [name, gradient] : reference.gradients()) {
    CHECK(torch::allclose(gradient, model->named_parameters()[name].grad(), 1e-4, 1e-6));
    ++compared;
  }
  CHECK(compared == 7);
  CHECK_THAT(refusal(
                 [&] {
                   const Data few = batch_of(3, 5, 0);
                   (void)trainer.step(few.inputs, few.labels);
                 },
                 Errc::CompileShape),
             ContainsSubstring("3 samples for 4 microbatches"));
}

TEST_CASE("a shape that cannot be had is told by step itself, and the trainer continues",
          "[integration][shapes]") {
  auto model = reader();
  model->throws_at = 3;
  model->other_below = 2;
  const Program program = compiled_reader(model, 3);
  Trainer trainer = trainer_of(Cluster::local(2), program);
  const auto refused = [&](std::int64_t rows, std::int64_t length, Errc code) {
    const Data batch = batch_of(rows, length, 0);
    const std::string why = refusal([&] { (void)trainer.step(batch.inputs, batch.labels); }, code);
    CHECK(refusal([&] { (void)Reference(program, Sgd{}, {}).step(batch.inputs, batch.labels); },
                  code) == why);
    return why;
  };
  CHECK_THAT(refused(12, 5, Errc::CompileShape),
             ContainsSubstring("microbatches of [3, 5] with labels [3]") &&
                 ContainsSubstring("this module takes no 3 rows"));
  CHECK_THAT(refused(4, 5, Errc::CompileShape),
             ContainsSubstring("uses other.weight, which the program does not use"));
  model->head->weight.requires_grad_(false);
  CHECK_THAT(refused(8, 5, Errc::UsageArgument), ContainsSubstring("head.weight"));
  model->head->weight.requires_grad_(true);
  CHECK(program.shape_captures()->count() == 1);
  for (const std::int64_t length : {6, 7}) {
    const Data batch = batch_of(16, length, 0);
    (void)trainer.step(batch.inputs, batch.labels).get();
  }
  CHECK_THAT(refused(16, 8, Errc::CompileShape),
             ContainsSubstring("3 shapes by now") && ContainsSubstring("CompileOptions::shapes"));
  const Data known = batch_of(16, 6, 1);
  CHECK(trainer.step(known.inputs, known.labels).get().step == 3);
}

TEST_CASE("a process that replaces another is told of all shapes", "[integration][shapes]") {
  const Program program = compiled_reader(reader());
  Cluster cluster = Cluster::spawn(2);
  Trainer trainer = trainer_of(cluster, program);
  Trainer undisturbed = trainer_of(Cluster::local(2), program);
  const std::string file =
      (std::filesystem::temp_directory_path() / ("stagecraft_shapes_" + std::to_string(getpid())))
          .string();
  for (std::int64_t i = 0; i < 2; ++i) {
    const Data batch = batch_of(13, 5, i);
    (void)undisturbed.step(batch.inputs, batch.labels).get();
    (void)trainer.step(batch.inputs, batch.labels).get();
    if (i == 0) {
      trainer.save(file);
      cluster.replace(Rank(1));
      trainer.load(file);
    }
  }
  std::filesystem::remove(file);
  CHECK(same_bits(trainer.state_dict(), undisturbed.state_dict()));
}

}  // namespace
}  // namespace stagecraft::tests
