#include "stagecraft/actors/profile/model_times.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <torch/torch.h>

#include "stagecraft/actors/profile/split_cost.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/measure/operator_costs.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

constexpr int kWidth = 128;

/// Has a value that two operators read, and small operators.
struct Net : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  Net() {
    a = register_module("a", torch::nn::Linear(kWidth, kWidth));
    b = register_module("b", torch::nn::Linear(kWidth, kWidth));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto h = torch::tanh(a(x));
    return torch::silu(b(h)) * h;
  }
};

struct Timed {
  Net net;
  torch::Tensor x = torch::randn({128, kWidth});
  Program program = compile(net, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square});

  [[nodiscard]] ModelTimes times(const ModelTiming& how) const {
    return time_model(program.compiled().graph, {x}, {x}, how);
  }
};

TEST_CASE("every node has its times, and they add up to the microbatch (MDT-1)",
          "[profile][executor]") {
  const Timed timed;
  const ModelTimes times = timed.times({.repeats = 1, .optimizer = AdamW{}});  // its own median
  double all = 0;
  for (const OperatorTimes& one : times.operators) {
    CHECK(one.forward > 0);
    CHECK(one.sums >= 0);
    CHECK(one.sums <= one.backward);
    all += one.forward + one.backward;
  }
  CHECK(times.operators.size() == timed.program.compiled().graph.nodes.size());
  REQUIRE(times.microbatches.size() == 1);
  CHECK(all == Approx(times.microbatches.front()));
  CHECK(times.update > 0);
  CHECK(times.saved_bytes > 0);
}

TEST_CASE("the backward of an operator is that of the nodes it made", "[profile][executor]") {
  const Timed timed;
  const std::vector<Node>& nodes = timed.program.compiled().graph.nodes;
  const ModelTimes times = timed.times({.repeats = 2, .optimizer = Sgd{}});
  REQUIRE(times.operators.size() == nodes.size());
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    CAPTURE(operator_name(nodes[n]));
    CHECK(times.operators[n].backward > 0);  // gradients flow back through all of this model
  }
  double sums = 0;
  for (const OperatorTimes& one : times.operators) {
    sums += one.sums;
  }
  CHECK(sums > 0);  // h is read twice, and gradients of parameters are added up
}

TEST_CASE("bytes that operators keep add up to those of the model (OC-2)", "[profile][executor]") {
  const Timed timed;
  const ModelTimes times = timed.times({.repeats = 1, .optimizer = Sgd{}});
  double kept = 0;
  for (const OperatorCost& cost :
       measure_operators(timed.program.compiled().graph, {timed.x}, {timed.x}, {.repeats = 1})) {
    kept += cost.kept;
  }
  CHECK(kept + sizeof(float) == Approx(times.saved_bytes));  // the loss, which no operator keeps
}

TEST_CASE("what operators hold at most is what is kept by then, and gradients beside it",
          "[profile][executor][memory]") {
  constexpr double kActivation = 128 * kWidth * sizeof(float);
  constexpr double kWeight = kWidth * kWidth * sizeof(float);
  const Timed timed;
  const ModelTimes times = timed.times({.repeats = 1, .optimizer = Sgd{}});
  REQUIRE(times.operators.size() > 2);
  double most = 0;
  for (const OperatorTimes& one : times.operators) {
    most = std::max(most, one.forward_peak);
    CHECK(one.backward_peak <= 4 * kActivation + 2 * kWeight);
  }
  CHECK(most >= times.saved_bytes);
  CHECK(most <= times.saved_bytes + 3 * kActivation);
  CHECK(times.operators[1].forward_peak >= kActivation);  // the first one makes a view
  // The first layer goes back with the gradient of its result, when all later values are gone.
  CHECK(times.operators.front().backward_peak >= kActivation);
  CHECK(times.operators.front().backward_peak <= 2 * kActivation + 2 * kWeight);
}

/// Ends with a value that its first operator made. The backward needs that value in the end only.
struct Skip : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  Skip() {
    a = register_module("a", torch::nn::Linear(kWidth, kWidth));
    b = register_module("b", torch::nn::Linear(kWidth, kWidth));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto skip = a(x) + 1;
    return b(torch::tanh(skip)) + torch::square(skip);
  }
};

TEST_CASE("values of earlier operators that are gone make the need of none smaller",
          "[profile][executor][memory]") {
  constexpr double kActivation = 128 * kWidth * sizeof(float);
  Skip net;
  const torch::Tensor x = torch::randn({128, kWidth});
  const Program program =
      compile(net, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square});
  const Graph& graph = program.compiled().graph;
  const ModelTimes times = time_model(graph, {x}, {x}, {.repeats = 1, .optimizer = Sgd{}});
  std::size_t tanh = graph.nodes.size();
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    tanh = operator_name(graph.nodes[n]) == "aten::tanh" ? n : tanh;
  }
  REQUIRE(tanh < graph.nodes.size());
  // The square goes back first and frees `skip`, but tanh still holds the gradient that it made,
  // its own value, and the gradients of its result and of its input.
  CHECK(times.operators[tanh].backward_peak >= 4 * kActivation);
}

TEST_CASE("a gradient toward a weight's transpose is a weight's", "[profile][compiler]") {
  const Timed timed;
  bool transposes = false;
  int layers = 0;
  for (const OperatorCost& cost :
       measure_operators(timed.program.compiled().graph, {timed.x}, {timed.x}, {.repeats = 1})) {
    CAPTURE(cost.name);
    if (cost.name == "aten::t") {
      CHECK(cost.backward_input == 0);
      transposes = true;
    }
    // The first layer has a gradient toward weights alone. In the second one the share of its
    // weights is a difference of two times, and may be nothing where the machine was busy.
    CHECK((cost.name != "aten::addmm" || cost.backward_input + cost.backward_weight > 0));
    CHECK((cost.name != "aten::addmm" || layers++ > 0 || cost.backward_input == 0));
  }
  CHECK(transposes);
  CHECK(layers == 2);
}

TEST_CASE("halves of a backward are told to take as long as the whole, or longer",
          "[profile][executor]") {
  const Timed timed;
  const Graph& graph = timed.program.compiled().graph;
  const auto weight = graph.parameters[0].tensor.clone();
  const SplitCost split =
      measure_split(graph, {timed.x}, {timed.x}, {.repeats = 3, .optimizer = Sgd{}});
  CHECK(split.time >= 1);
  CHECK(split.time < 100);
  CHECK(torch::equal(graph.parameters[0].tensor, weight));
}

TEST_CASE("between I and W waits what a layer read, and the gradient of what it made",
          "[profile][executor][memory]") {
  constexpr double kActivation = 128 * kWidth * sizeof(float);
  const Timed timed;
  const Graph& graph = timed.program.compiled().graph;
  const SplitCost split =
      measure_split(graph, {timed.x}, {timed.x}, {.repeats = 1, .optimizer = Sgd{}});
  REQUIRE(split.waiting.size() == graph.nodes.size());
  int layers = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::string name = operator_name(graph.nodes[n]);
    CAPTURE(n, name);
    if (!split.waiting[n]) {
      CHECK((name == "aten::t" || name == "aten::addmm"));  // `a` begins the model
      continue;
    }
    layers += name == "aten::addmm" ? 1 : 0;
    CHECK(split.waiting[n]->values == (name == "aten::tanh" ? kActivation : 0));
    CHECK(split.waiting[n]->gradients == (name == "aten::addmm" ? kActivation : 0));
  }
  CHECK(layers == 1);
}

TEST_CASE("timing trains a copy (MDT-2)", "[profile][executor]") {
  const Timed timed;
  const auto weight = timed.program.compiled().graph.parameters[0].tensor.clone();
  (void)timed.times({.repeats = 1, .optimizer = Sgd{}});
  CHECK(torch::equal(timed.program.compiled().graph.parameters[0].tensor, weight));
  CHECK_FALSE(timed.net.a->weight.grad().defined());
}

TEST_CASE("no repeats or threads are refused", "[profile][executor][bad-input]") {
  const Timed timed;
  CHECK_THROWS_WITH(timed.times({.repeats = 0}), ContainsSubstring("0 repeats"));
  CHECK_THROWS_WITH(timed.times({.threads = 0}), ContainsSubstring("0 threads"));
}

}  // namespace
}  // namespace stagecraft
