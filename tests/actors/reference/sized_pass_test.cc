#include "stagecraft/actors/reference/sized_pass.h"

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using testing::mean_square;

constexpr int kPassMicrobatches = 4;

TEST_CASE("SZ-1: each stage runs its own microbatches, in ascending order",
          "[executor][reference][sizes]") {
  torch::manual_seed(7);
  const auto module = std::make_shared<testing::Chain>(2);
  const torch::Tensor x = torch::randn({8, 8}), y = torch::randn({8, 8});
  const auto sizes = GENERATE(std::vector<int>{1, 2}, std::vector<int>{2, 1});
  const Program program = resize(
      compile(
          module,
          {.inputs = {x}, .labels = {y}, .loss = mean_square, .microbatches = kPassMicrobatches}),
      sizes);
  set_own_thread_count(1);
  const CompiledProgram& compiled = program.compiled();
  std::vector<StageRuntime> stages;
  for (const StageId id : compiled.partition.order) {
    stages.emplace_back(compiled.partition.stages[id.index()], Sgd{});
    stages.back().load(initial_state(compiled.graph));
    stages.back().buckets.begin_step();
  }
  const Parts parts = parts_of(program, {x}, {y});
  const std::vector<double> losses =
      SizedPass(compiled, stages, parts).run({.seed = 5}, /*loss_scale=*/1.0);

  // The plain loop runs the first layer on its microbatches, and the second on its own.
  const auto in_parts = [](const torch::Tensor& rows, int size) {
    return rows.chunk(kPassMicrobatches / size);
  };
  std::vector<torch::Tensor> between;
  for (const torch::Tensor& part : in_parts(x, sizes[0])) {
    between.push_back(torch::tanh(module->layers[0](part)));
  }
  const auto labels = in_parts(y, sizes[1]);
  const auto inputs = in_parts(torch::cat(between), sizes[1]);
  REQUIRE(losses.size() == inputs.size());
  for (std::size_t m = 0; m < inputs.size(); ++m) {
    const auto loss = mean_square(torch::tanh(module->layers[1](inputs[m])), labels[m]);
    CHECK(loss.item<double>() == losses[m]);
    loss.backward({}, /*retain_graph=*/true);
  }
  for (std::size_t s = 0; s < 2; ++s) {
    for (const NamedTensor& gradient : stages[s].buckets.gradients()) {
      const torch::Tensor plain = module->named_parameters()[gradient.name].grad();
      CHECK(torch::allclose(gradient.tensor, plain, 1e-5, 1e-6));
    }
  }
}

}  // namespace
}  // namespace stagecraft
