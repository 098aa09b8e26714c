/// Tests what operators read: of each other through views and writes in place, of the batch, and of
/// parameters.
#include "stagecraft/compiler/measure/operator_uses.h"

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

constexpr double kWhole = 4 * 4 * sizeof(float);  // of a value of 4 rows
constexpr double kHalf = kWhole / 2;

/// Has a parameter used twice, an operator with two results, and a write through a view.
struct TwiceUsed : torch::nn::Module {
  torch::Tensor a{register_parameter("a", torch::randn({4, 4}))};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = torch::matmul(x, a);
    const auto parts = h.chunk(2, 1);
    const auto sum = parts[0] + parts[1];
    const auto t = torch::sin(h);
    t.narrow(1, 0, 2).mul_(sum);
    return torch::matmul(t, a);
  }
};

struct Uses {
  TwiceUsed net;
  torch::Tensor x = torch::randn({4, 4});
  Program program = compile(net, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square});
  std::vector<OperatorCost> costs = [&] {
    const Graph& graph = program.compiled().graph;
    std::vector<OperatorCost> made(graph.nodes.size());
    for (std::size_t n = 0; n < made.size(); ++n) {
      made[n].id = static_cast<int>(n);
      made[n].name = operator_name(graph.nodes[n]);
    }
    note_uses(graph, made);
    return made;
  }();

  /// Returns the first operator of this name after `skip` others.
  [[nodiscard]] const OperatorCost& of(const std::string& name, int skip = 0) const {
    for (const OperatorCost& cost : costs) {
      if (cost.name.starts_with(name) && skip-- == 0) {
        return cost;
      }
    }
    FAIL("no operator " << name);
    throw std::logic_error("not reached");
  }
};

TEST_CASE("reads name producer, result and bytes", "[compiler][operator-uses]") {
  const Uses uses;
  const int product = uses.of("aten::matmul").id;
  const int parts = product + 1;
  CHECK(uses.of("aten::matmul").reads.empty());
  CHECK((uses.costs[static_cast<std::size_t>(parts)].reads ==
         std::vector<OperatorRead>{{product, 0, kWhole}}));
  CHECK((uses.of("aten::add").reads ==
         std::vector<OperatorRead>{{parts, 0, kHalf}, {parts, 1, kHalf}}));
  CHECK((uses.of("aten::sin").reads == std::vector<OperatorRead>{{product, 0, kWhole}}));
}

TEST_CASE("a value written through a view is read from its maker, after the writer",
          "[compiler][operator-uses]") {
  const Uses uses;
  const int write = uses.of("aten::mul_").id;
  CHECK((uses.of("aten::mul_").reads ==
         std::vector<OperatorRead>{{uses.of("aten::narrow").id, 0, kHalf},
                                   {uses.of("aten::add").id, 0, kHalf}}));
  CHECK((uses.of("aten::matmul", 1).reads ==
         std::vector<OperatorRead>{{uses.of("aten::sin").id, 0, kWhole}, {write, 0, 0}}));
}

TEST_CASE("operators between which nothing can be cut are joined", "[compiler][operator-uses]") {
  const Uses uses;
  CHECK_FALSE(uses.of("aten::matmul").joined);
  CHECK_FALSE(uses.of("aten::sin").joined);
  CHECK(uses.of("aten::narrow").joined);
  CHECK(uses.of("aten::mul_").joined);
  CHECK_FALSE(uses.of("aten::matmul", 1).joined);
}

TEST_CASE("the reads of batch and parameters are listed for every operator",
          "[compiler][operator-uses]") {
  const Uses uses;
  CHECK(uses.of("aten::matmul").input == kWhole);
  CHECK(uses.of("aten::matmul").parameters == std::vector<std::string>{"a"});
  CHECK(uses.of("aten::matmul", 1).input == 0);
  CHECK(uses.of("aten::matmul", 1).parameters == std::vector<std::string>{"a"});
  double labels = 0;
  for (const OperatorCost& cost : uses.costs) {
    labels += cost.input;
  }
  CHECK(labels == 2 * kWhole);  // the loss reads the label
}

}  // namespace
}  // namespace stagecraft
