/// Tests the model of the main job, run directly and through a compiled program.

#include "stagecraft/examples/models/llama.h"

#include <ATen/ops/equal.h>

#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/train/work/byte_text.h"

namespace stagecraft::examples {
namespace {

constexpr int kMicrobatches = 4;

LlamaOptions small_llama(std::int64_t stages) {
  return {.vocabulary = 76,
          .layers = 4,
          .dim = 32,
          .heads = 2,
          .ffn = 48,
          .sequence = 16,
          .stages = stages};
}

tools::TextBatch small_batch() {
  return tools::ByteText::read("/usr/share/common-licenses/GPL-3", 16)
      .batch(0, 0, 2 * kMicrobatches);
}

/// Runs the module eagerly on every microbatch; gradients add up, as in a training loop.
std::vector<double> eager_losses(Llama& model, const tools::TextBatch& batch) {
  const auto tokens = batch.tokens.chunk(kMicrobatches),
             targets = batch.targets.chunk(kMicrobatches);
  std::vector<double> losses;
  for (std::size_t m = 0; m < kMicrobatches; ++m) {
    const at::Tensor loss = next_token_loss(model->forward(tokens[m]), targets[m]);
    loss.backward();
    losses.push_back(loss.item().toDouble());
  }
  return losses;
}

}  // namespace

TEST_CASE("weights depend on seed and layer, not on the cut", "[tools][llama]") {
  const Llama one(small_llama(1)), four(small_llama(4));
  LlamaOptions other = small_llama(1);
  other.seed = 1;
  const Llama reseeded(other);
  REQUIRE(one->parameters().size() == 39);
  for (std::size_t i = 0; i < one->parameters().size(); ++i) {
    const at::Tensor parameter = one->parameters()[i];
    CHECK(at::equal(parameter, four->parameters()[i]));
    CHECK((parameter.dim() == 1) == at::equal(parameter, reseeded->parameters()[i]));
  }
}

TEST_CASE("a Llama with sizes that do not fit is refused", "[tools][llama]") {
  LlamaOptions options = small_llama(5);
  CHECK_THROWS_AS(Llama(options), Error);
  options = small_llama(1);
  options.heads = 3;
  CHECK_THROWS_AS(Llama(options), Error);
}

TEST_CASE("the module run eagerly gives the losses and gradients of the compiled program",
          "[tools][llama]") {
  const std::int64_t stages = GENERATE(1, 2, 4);
  const tools::TextBatch batch = small_batch();
  Llama eager(small_llama(stages)), captured(small_llama(stages));
  const Program program = compile(captured,
                                  {.inputs = {batch.tokens},
                                   .labels = {batch.targets},
                                   .loss = next_token_loss,
                                   .microbatches = kMicrobatches});
  Reference reference(program, Sgd{}, {});
  const ReferenceStep step = reference.step({batch.tokens}, {batch.targets});
  CHECK(step.losses == eager_losses(eager, batch));
  const auto gradients = reference.gradients();
  const auto parameters = eager->named_parameters();
  REQUIRE(gradients.size() == parameters.size());
  for (const StateTensor& gradient : gradients) {
    INFO(gradient.name);
    CHECK(at::equal(parameters[gradient.name].grad().div(kMicrobatches), gradient.tensor));
  }
}

}  // namespace stagecraft::examples
