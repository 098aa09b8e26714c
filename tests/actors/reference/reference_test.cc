/// Tests the training in one process with which pipelines are compared: it has the arithmetic of a
/// plain loop.
#include "stagecraft/actors/reference/reference.h"

#include <limits>
#include <map>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

constexpr int kReferenceMicrobatches = 4;

/// A chain of three stages with a batch.
struct LoopedChain {
  LoopedChain() {
    torch::manual_seed(6);
    module.emplace(3);
    inputs.emplace_back(torch::randn({8, 8}));
    labels.emplace_back(torch::randn({8, 8}));
    set_own_thread_count(1);
  }
  [[nodiscard]] Program program() {
    return compile(*module,
                   {.inputs = inputs,
                    .labels = labels,
                    .loss = mean_square,
                    .microbatches = kReferenceMicrobatches});
  }
  /// Returns the losses of the microbatches of a plain loop, whose gradients stay in the module.
  [[nodiscard]] std::vector<double> plain_loop() {
    std::vector<double> losses;
    const auto x = inputs[0].tensor.chunk(kReferenceMicrobatches);
    const auto y = labels[0].tensor.chunk(kReferenceMicrobatches);
    for (std::size_t m = 0; m < kReferenceMicrobatches; ++m) {
      const auto loss = mean_square(module->forward(x[m]), y[m]);
      losses.push_back(loss.item<double>());
      loss.backward();
    }
    return losses;
  }

  std::optional<testing::Chain> module;
  Batch inputs, labels;
};

TEST_CASE("the reference has the losses and gradients of a plain loop, bit by bit",
          "[executor][reference]") {
  LoopedChain f;
  Reference reference(f.program(), Sgd{.lr = 0.1}, {.seed = 5});
  const ReferenceStep step = reference.step(f.inputs, f.labels);
  CHECK(step.losses == f.plain_loop());
  std::map<std::string, torch::Tensor> plain;
  for (const auto& p : f.module->named_parameters()) {
    plain[p.key()] = p.value().grad() / kReferenceMicrobatches;
  }
  const std::vector<StateTensor> gradients = reference.gradients();
  CHECK(gradients.size() == plain.size());
  for (const StateTensor& gradient : gradients) {
    INFO(gradient.name);
    CHECK(torch::equal(gradient.tensor, plain.at(gradient.name)));
  }
}

TEST_CASE("an update of several batches is one of all their microbatches",
          "[executor][reference]") {
  LoopedChain f;
  const Program program = f.program();
  Reference one(program, Sgd{.lr = 0.1}, {.seed = 5});
  Reference two(program, Sgd{.lr = 0.1}, {.seed = 5});
  (void)one.step(f.inputs, f.labels);
  const ReferenceStep part = two.accumulate(f.inputs, f.labels);
  CHECK(two.steps() == 0);
  const ReferenceStep whole = two.step(f.inputs, f.labels);
  CHECK(two.steps() == 1);
  CHECK(whole.losses.size() == 2 * part.losses.size());
  // The gradient is the mean of two equal ones.
  for (std::size_t i = 0; i < one.state().size(); ++i) {
    CHECK(torch::allclose(one.state()[i].tensor, two.state()[i].tensor, 1e-6, 1e-7));
  }
}

TEST_CASE("a batch that fails drops the batches of its update", "[executor][reference]") {
  LoopedChain f;
  const Program program = f.program();
  Reference reference(program, Sgd{.lr = 0.1}, {.seed = 5});
  Reference undisturbed(program, Sgd{.lr = 0.1}, {.seed = 5});
  (void)reference.accumulate(f.inputs, f.labels);
  const Batch infinite{f.labels[0].tensor + std::numeric_limits<double>::infinity()};
  refusal([&] { (void)reference.step(f.inputs, infinite); }, Errc::NonFinite);
  CHECK(reference.steps() == 0);
  CHECK(reference.step(f.inputs, f.labels).losses == undisturbed.step(f.inputs, f.labels).losses);
  for (std::size_t i = 0; i < reference.state().size(); ++i) {
    CHECK(torch::equal(reference.state()[i].tensor, undisturbed.state()[i].tensor));
  }
}

TEST_CASE("clipped gradients are told only where they were kept", "[executor][reference]") {
  LoopedChain f;
  const Program program = f.program();
  Reference clipped(program, Sgd{.lr = 0.1}, {.clip = 1e-3, .seed = 5});
  (void)clipped.step(f.inputs, f.labels);
  CHECK_THAT(refusal([&] { (void)clipped.gradients(); }),
             ContainsSubstring("set ReferenceOptions::keep_gradients"));
  Reference kept(program, Sgd{.lr = 0.1}, {.clip = 1e-3, .keep_gradients = true, .seed = 5});
  Reference plain(program, Sgd{.lr = 0.1}, {.seed = 5});
  (void)kept.step(f.inputs, f.labels);
  (void)plain.step(f.inputs, f.labels);
  for (std::size_t i = 0; i < kept.gradients().size(); ++i) {
    CHECK(torch::equal(kept.gradients()[i].tensor, plain.gradients()[i].tensor));
  }
}

TEST_CASE("a rate that was set holds from then on", "[executor][reference]") {
  LoopedChain f;
  Reference reference(f.program(), Sgd{.lr = 0.5}, {.seed = 5});
  reference.set_learning_rate(0.25);
  CHECK(reference.step(f.inputs, f.labels).learning_rate == 0.25);
  reference.set_learning_rate(std::nullopt);
  CHECK(reference.step(f.inputs, f.labels).learning_rate == 0.5);
  reference.scale_learning_rate(0.5);
  CHECK(reference.step(f.inputs, f.labels).learning_rate == 0.25);
  reference.scale_learning_rate(1.0);
  refusal([&] { reference.scale_learning_rate(-1.0); });
  refusal([&] { reference.set_learning_rate(-1.0); });
}

}  // namespace
}  // namespace stagecraft
