/// Tests gradients as large as float32 holds: clipping trains with them, whatever copies share, and
/// only an optimizer whose state cannot hold their squares refuses them unclipped.
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include <torch/torch.h>

#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"

namespace stagecraft::tests::large_gradients {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kWidth = 64;  // several blocks of a norm
constexpr double kClip = 0.5;

/// Its loss adds up its outputs times the labels, which are therefore the outputs' gradients.
struct Linears : torch::nn::Module {
  torch::nn::Linear below{torch::nn::LinearOptions(kWidth, kWidth)};
  torch::nn::Linear above{torch::nn::LinearOptions(kWidth, kWidth)};

  Linears() {
    register_module("below", below);
    register_module("above", above);
    const torch::NoGradGuard no_grad;
    for (const torch::Tensor& parameter : parameters()) {  // outputs below 1
      parameter.copy_(torch::linspace(0.0, 0.01, parameter.numel()).view(parameter.sizes()));
    }
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = stage("below", [&] { return below(x); });
    return stage("above", [&] { return above(h); });
  }
};

/// Returns labels of which `rows` of the first microbatches have one element of this size.
torch::Tensor labels_with(double size, std::int64_t rows = 1) {
  torch::Tensor labels = torch::zeros({2 * kMicrobatches, kWidth});
  for (std::int64_t row = 0; row < rows; ++row) {
    labels[2 * row][3] = size;
  }
  return labels;
}

torch::Tensor large_inputs() {
  return torch::full({2 * kMicrobatches, kWidth}, 0.1);
}

Program linears() {
  Linears model;
  return compile(
      model,
      {.inputs = {large_inputs()},
       .labels = {labels_with(1.0)},
       .loss = [](const at::Tensor& y, const at::Tensor& label) { return (y * label).sum(); },
       .microbatches = kMicrobatches});
}

Execution in_copies_of(const Program& program, Sharing sharing) {
  const Schedule rows = build_schedule("1f1b", {.devices = 2, .microbatches = kMicrobatches / 2});
  ReplicateOptions options = ReplicateOptions::at(sharing);
  options.bucket_bytes = 20000;
  return make_execution(program, in_copies(rows, 2), options);
}

/// Returns the size of what changed.
double moved(const StateDict& before, const StateDict& after) {
  double squares = 0.0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    squares +=
        (after[i].second - before[i].second).to(torch::kDouble).square().sum().item<double>();
  }
  return std::sqrt(squares);
}

TEST_CASE("a gradient of any finite size is clipped, as in one process, whatever copies share",
          "[integration][optimizers][shards]") {
  const double size = GENERATE(1e25, 3e38);
  const auto sharing =
      GENERATE(Sharing::Nothing, Sharing::States, Sharing::Gradients, Sharing::Weights);
  CAPTURE(size, sharing);
  const Program program = linears();
  for (const Optimizer& optimizer :
       {Optimizer(Sgd{.lr = 1.0}), Optimizer(AdamW{.lr = 1e-2}), Optimizer(RMSprop{.lr = 1e-2})}) {
    TrainedCopies run(in_copies_of(program, sharing), optimizer, {.clip = kClip, .seed = 9});
    ReferenceOptions alike{.clip = kClip, .seed = 9};
    alike.sums = std::make_shared<const SumOrder>(sum_order_of(run.trainer.plan()));
    Reference reference(program, optimizer, std::move(alike));
    const StateDict before = run.trainer.state_dict();
    const Batch inputs{large_inputs()}, labels{labels_with(size)};
    const StepResult result = run.trainer.step(inputs, labels).get();
    CHECK(result.gradient_norm == reference.step(inputs, labels).gradient_norm);
    CHECK(result.gradient_norm >= size / kMicrobatches);  // of the mean
    CHECK(std::isfinite(result.gradient_norm));
    CHECK(same_bits(weights_of(run.trainer), weights_of(reference)));
    if (std::holds_alternative<Sgd>(optimizer)) {
      CHECK(moved(before, run.trainer.state_dict()) == Catch::Approx(kClip).epsilon(1e-4));
    }
    const Batch usual{labels_with(1.0)};
    (void)run.trainer.step(inputs, usual).get();
    (void)reference.step(inputs, usual);
    CHECK(same_bits(weights_of(run.trainer), weights_of(reference)));
  }
}

TEST_CASE("BU-9: unclipped, only an optimizer that keeps squares refuses a finite gradient",
          "[integration][optimizers]") {
  const Program program = linears();
  const Batch inputs{large_inputs()}, labels{labels_with(3e38)};
  const auto trainer_of = [&](const Optimizer& optimizer, const TrainerOptions& options) {
    return Trainer(Cluster::local(2), program, "1f1b", optimizer, options);
  };
  SECTION("it is refused, and nothing changes") {
    for (const Optimizer& optimizer :
         {Optimizer(Adam{}), Optimizer(AdamW{}), Optimizer(Adagrad{}), Optimizer(RMSprop{})}) {
      Trainer trainer = trainer_of(optimizer, {});
      const StateDict before = trainer.state_dict();
      const Error error = error_of(trainer.step(inputs, labels));
      CHECK(error.code() == Errc::NonFinite);
      CHECK_THAT(error.message(),
                 ContainsSubstring("is finite, but its square is too large for its type") &&
                     ContainsSubstring("clip gradients"));
      CHECK(same_bits(trainer.state_dict(), before));
      trainer.set_clip(1.0);
      CHECK_NOTHROW(trainer.step(inputs, labels).get());
    }
  }
  SECTION("limited elements train") {
    Trainer trainer = trainer_of(AdamW{}, {.clip_value = 0.5, .keep_gradients = true});
    Reference reference(program, AdamW{}, {.clip_value = 0.5});
    (void)trainer.step(inputs, labels).get();
    (void)reference.step(inputs, labels);
    CHECK(same_bits(weights_of(trainer), weights_of(reference)));
  }
  SECTION("the others take it as it is") {
    Trainer trainer = trainer_of(Sgd{.lr = 1e-37}, {});
    const StateDict before = trainer.state_dict();
    const double norm = trainer.step(inputs, labels).get().gradient_norm;
    CHECK(moved(before, trainer.state_dict()) == Catch::Approx(1e-37 * norm).epsilon(1e-4));
  }
  SECTION("a sum that float32 cannot hold is not finite") {
    Trainer trainer = trainer_of(Sgd{}, {.clip = 1.0});
    const Batch twice{labels_with(3e38, 2)};
    const Error error = error_of(trainer.step(inputs, twice));
    CHECK(error.code() == Errc::NonFinite);
    CHECK_THAT(error.message(), ContainsSubstring("is not finite"));
  }
}

}  // namespace
}  // namespace stagecraft::tests::large_gradients
