#include "stagecraft/actors/trainer/state/unused_state.h"

#include <algorithm>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

/// Has a parameter and a buffer that no stage reads.
struct WithSpare : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(3, 3))};
  torch::Tensor spare = register_parameter("spare", torch::full({2}, 5.0));
  torch::Tensor mean = register_buffer("mean", torch::full({1}, 7.0));
  torch::Tensor forward(torch::Tensor x) {
    return stage("all", [&] { return layer(x); });
  }
};

TEST_CASE("what no stage has is kept under its names in checkpoints", "[executor][state]") {
  WithSpare module;
  const Batch batch{torch::randn({4, 3})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  UnusedState unused(program.compiled());
  REQUIRE(unused.tensors().size() == 2);
  CHECK(unused.tensors()[0].name == "weight:spare");
  CHECK(unused.tensors()[1].name == "buffer:mean");
  CHECK(torch::equal(unused.tensors()[0].tensor, torch::full({2}, 5.0)));
  CHECK_FALSE(unused.tensors()[0].tensor.requires_grad());
  const torch::Tensor living = unused.tensors()[0].tensor;
  unused.replace([](const std::string& name) {
    return name == "weight:spare" ? torch::full({2}, 1.0) : torch::zeros({1});
  });
  CHECK(torch::equal(living, torch::full({2}, 1.0)));
  const std::vector<NamedTensor>& compiled = program.compiled().graph.parameters;
  const auto spare = std::ranges::find(compiled, "spare", &NamedTensor::name);
  CHECK(torch::equal(spare->tensor.detach(), torch::full({2}, 5.0)));
}

}  // namespace
}  // namespace stagecraft
