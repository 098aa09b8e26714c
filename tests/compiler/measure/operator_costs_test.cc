/// Tests the costs of operators: their place, the gradients that flow back through them, and the
/// bytes they keep. Times are only checked for presence, because no test can know how fast a
/// machine is.
#include "stagecraft/compiler/measure/operator_costs.h"

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kBytes = 4 * 4 * sizeof(float);  // of a value of one microbatch

struct Twice : torch::autograd::Function<Twice> {
  static torch::Tensor forward(AutogradContext*, torch::Tensor x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 2}; }
};

/// Has weights that are trained and frozen, a value that two operators keep, a write in place,
/// integers, several results and a custom function.
struct CostedNet : torch::nn::Module {
  torch::Tensor trained{register_parameter("trained", torch::randn({4, 4}))};
  torch::Tensor frozen{register_parameter("frozen", torch::randn({4, 4}), false)};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] { return torch::tanh(torch::matmul(x, trained)); });
    return stage("second", [&] {
      auto product = torch::matmul(h, frozen) * h;
      product.relu_();
      const auto halves = product.chunk(2, 1);
      const auto indices = product.argmax(1);
      return Twice::apply(torch::cat({halves[1], halves[0]}, 1) + indices.unsqueeze(1));
    });
  }
};

struct Measured {
  CostedNet net;
  torch::Tensor x = torch::randn({8, 4});
  Program program =
      compile(net, {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2});
  std::vector<OperatorCost> costs = measure_operators(program, {x}, {x}, {.repeats = 2});

  /// Returns the first operator of this name after `skip` others.
  [[nodiscard]] const OperatorCost& cost(const std::string& name, int skip = 0) const {
    for (const OperatorCost& cost : costs) {
      if (cost.name.starts_with(name) && skip-- == 0) {
        return cost;
      }
    }
    FAIL("no operator " << name);
    throw std::logic_error("not reached");
  }
};

TEST_CASE("every operator of the graph has its cost, in order and by stage",
          "[compiler][operator-costs]") {
  const Measured measured;
  const auto& nodes = measured.program.compiled().graph.nodes;
  REQUIRE(measured.costs.size() == nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    CAPTURE(i);
    CHECK(measured.costs[i].id == static_cast<int>(i));
    CHECK(measured.costs[i].name == operator_name(nodes[i]));
    CHECK(measured.costs[i].forward > 0);
  }
  CHECK(measured.cost("aten::tanh").stage == StageId(0));
  CHECK(measured.cost("aten::matmul", 1).stage == StageId(1));
  CHECK(measured.cost("aten::mean").stage == StageId(1));
}

TEST_CASE("a backward is divided by the ends of its gradients, and costs nothing without any",
          "[compiler][operator-costs]") {
  const Measured measured;
  const OperatorCost& of_batch = measured.cost("aten::matmul");
  CHECK(of_batch.backward_input == 0);
  CHECK(of_batch.backward_weight > 0);
  const OperatorCost& of_frozen = measured.cost("aten::matmul", 1);
  CHECK(of_frozen.backward_input > 0);
  CHECK(of_frozen.backward_weight == 0);
  for (const std::string& name : std::vector<std::string>{
           "aten::tanh", "aten::relu_", "aten::cat", std::string(kFunctionNode)}) {
    CAPTURE(name);
    CHECK(measured.cost(name).backward_input > 0);
    CHECK(measured.cost(name).backward_weight == 0);
  }
  for (const char* name : {"aten::argmax", "aten::unsqueeze"}) {
    CAPTURE(name);
    CHECK(measured.cost(name).backward_input == 0);
    CHECK(measured.cost(name).backward_weight == 0);
    CHECK(measured.cost(name).kept == 0);
  }
}

TEST_CASE("bytes kept are counted with the operator that made them (OC-2)",
          "[compiler][operator-costs]") {
  const Measured measured;
  CHECK(measured.cost("aten::matmul").kept == 0);     // keeps only the batch
  CHECK(measured.cost("aten::tanh").kept == kBytes);  // its result
  // It keeps its result, which the product keeps; of its operands, one belongs to the tangent and
  // one is a parameter.
  CHECK(measured.cost("aten::matmul", 1).kept == kBytes);
  CHECK(measured.cost("aten::mul").kept == kBytes);  // its result, after relu_ has written it
  CHECK(measured.cost("aten::relu_").kept == 0);
  CHECK(measured.cost("aten::tanh").output == kBytes);
  CHECK(measured.cost("aten::argmax").output == 4 * sizeof(std::int64_t));
}

TEST_CASE("measuring leaves program, module and batch as they were (OC-1)",
          "[compiler][operator-costs]") {
  CostedNet net;
  const auto x = torch::randn({8, 4});
  const auto before = x.clone();
  const Program program =
      compile(net, {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2});
  const auto weight = program.compiled().graph.parameters[0].tensor.clone();
  const int threads = at::get_num_threads();
  (void)measure_operators(program, {x}, {x}, {.repeats = 1, .threads = 2});
  CHECK(at::get_num_threads() == threads);
  CHECK(torch::equal(x, before));
  CHECK(torch::equal(program.compiled().graph.parameters[0].tensor, weight));
  CHECK_FALSE(program.compiled().graph.parameters[0].tensor.grad().defined());
  CHECK_FALSE(net.trained.grad().defined());
}

TEST_CASE("a measurement that is not possible is refused with the accepted values",
          "[compiler][operator-costs][bad-input]") {
  const Measured measured;
  const auto& x = measured.x;
  const auto measure = [&](const torch::Tensor& batch, const OperatorMeasuring& how) {
    return measure_operators(measured.program, {batch}, {x}, how);
  };
  CHECK_THROWS_WITH(measure(x, {.repeats = 0}), ContainsSubstring("found 0 repeats"));
  CHECK_THROWS_WITH(measure(x, {.threads = 0}), ContainsSubstring("0 threads"));
  CHECK_THROWS_WITH(measure(torch::randn({8, 5}), {}), ContainsSubstring("[8, 4]"));
}

}  // namespace
}  // namespace stagecraft
