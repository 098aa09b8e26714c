/// Tests the stages of an evaluation: copies of values that two stages write, state that no stage
/// trains, and modules that fit no stages.
#include "stagecraft/compiler/shapes/evaluation_stages.h"

#include <algorithm>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/graph/state_paths.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

/// Its dropout gives training a new value at the border; evaluation has the one before it.
struct Positions : torch::nn::Module {
  torch::nn::Linear embed{register_module("embed", torch::nn::Linear(6, 6))};
  torch::nn::Linear position{register_module("position", torch::nn::Linear(6, 6))};
  torch::nn::Dropout dropout{register_module("dropout", torch::nn::Dropout(0.3))};
  torch::Tensor forward(const torch::Tensor& x) {
    auto h = dropout(embed(x));
    h.add_(position(x));
    return h.mul_(2);
  }
};

template <class Module>
Program evaluated_at(Module& module, const Cut& cut) {
  const auto x = torch::randn({4, 6});
  return compile(module,
                 {.inputs = {x},
                  .labels = {torch::randn({4, 6})},
                  .loss = mean_square,
                  .microbatches = 2,
                  .cut = cut});
}

TEST_CASE("a stage copies a value of another stage that it writes in evaluation only",
          "[compiler][shapes][evaluation]") {
  Positions module;
  const Program program = evaluated_at(module, At{"position"});
  const CompiledProgram evaluation =
      program.evaluations()->prediction({torch::randn({4, 6})}).compiled();
  const auto clones = [](const StageProgram& stage) {
    return std::ranges::count(stage.chunks[0].nodes, "aten::clone", &Node::name);
  };
  CHECK(clones(evaluation.partition.stages[0]) == 0);
  CHECK(clones(evaluation.partition.stages[1]) == 1);
  CHECK(
      program.evaluations()->prediction({torch::randn({4, 6})}).graph_text().find("aten::clone") !=
      std::string::npos);
  Program whole = evaluated_at(module, Cut{});
  CHECK_THAT(whole.evaluations()->prediction({torch::randn({4, 6})}).graph_text(),
             !ContainsSubstring("aten::clone"));
}

/// Its evaluation uses values that training does not use, or in the other order.
struct Swapping : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(6, 6))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(6, 6))};
  torch::nn::Linear spare{register_module("spare", torch::nn::Linear(6, 6))};
  torch::Tensor shift{register_buffer("shift", torch::ones(6))};
  bool swaps = false;
  torch::Tensor forward(const torch::Tensor& x) {
    if (is_training()) {
      return b(torch::tanh(a(x)));
    }
    return swaps ? a(torch::tanh(b(x))) : spare(torch::tanh(a(x))) + shift;
  }
};

TEST_CASE("state that no stage trains is a constant of the stage that evaluates with it (EV-3)",
          "[compiler][shapes][evaluation]") {
  Swapping module;
  const Program program = evaluated_at(module, At{"b"});
  const CompiledProgram evaluation =
      program.evaluations()->prediction({torch::randn({4, 6})}).compiled();
  std::vector<std::string> given, kept;
  for (const StageProgram& stage : evaluation.partition.stages) {
    for (const StageConstant& constant : stage.constants) {
      given.push_back(*name_of_state(evaluation.graph, constant.value));
    }
    for (const StageParameter& parameter : stage.parameters) {
      kept.push_back(parameter.name);
    }
    CHECK(stage.buffers.empty());
  }
  std::ranges::sort(given);
  CHECK(given == std::vector<std::string>{"shift", "spare.bias", "spare.weight"});
  CHECK(kept == std::vector<std::string>{"a.weight", "a.bias"});
}

TEST_CASE("a refused evaluation names the operator that fits no stage, and its parameters",
          "[compiler][shapes][evaluation]") {
  Swapping module;
  module.swaps = true;
  const Program program = evaluated_at(module, At{"b"});
  CHECK_THAT(refusal(
                 [&] {
                   (void)program.evaluations()->prediction({torch::randn({4, 6})});
                 },
                 Errc::CompilePartition),
             ContainsSubstring("aten::") && ContainsSubstring("fits no stage"));
}

}  // namespace
}  // namespace stagecraft
