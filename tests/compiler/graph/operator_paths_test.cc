/// Tests the names that messages give to operators and places of a graph.
#include "stagecraft/compiler/graph/operator_paths.h"

#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/graph/state_paths.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Paths = std::vector<std::string>;

/// Is a block of two layers.
struct Block : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(4, 4))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(4, 4))};
  torch::Tensor forward(const torch::Tensor& x) { return out(torch::tanh(in(x))); }
};

/// Has two blocks in a list, and a parameter and a buffer of its own.
struct Stack : torch::nn::Module {
  std::vector<std::shared_ptr<Block>> blocks;
  torch::Tensor scale{register_parameter("scale", torch::ones({4}))};
  torch::Tensor shift{register_buffer("shift", torch::ones({4}))};
  Stack() {
    torch::nn::ModuleList list;
    for (int i = 0; i < 2; ++i) {
      blocks.push_back(std::make_shared<Block>());
      list->push_back(blocks.back());
    }
    register_module("blocks", list);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor h = x.neg();
    for (const auto& block : blocks) {
      h = torch::relu(block->forward(h));
    }
    return (h * scale + shift).exp();
  }
};

Program stack_program() {
  Stack stack;
  return compile(stack, {.inputs = {torch::randn({4, 4})}, .loss = [](const torch::Tensor& y) {
                           return y.mean();
                         }});
}

TEST_CASE("an operator has the path of the module whose state it uses", "[compiler][graph]") {
  const Program program = stack_program();
  const Graph& graph = program.compiled().graph;
  const Paths own = own_paths(graph);
  Paths named;
  for (const std::string& path : own) {
    if (!path.empty() && (named.empty() || named.back() != path)) {
      named.push_back(path);
    }
  }
  CHECK(named ==
        Paths{"blocks.0.in", "blocks.0.out", "blocks.1.in", "blocks.1.out", "scale", "shift"});
  CHECK(last_path(graph) == "shift");
  CHECK(last_path(Graph()).empty());
}

TEST_CASE("a place is named by the modules beside it, as short as it stays clear",
          "[compiler][graph]") {
  const Program program = stack_program();
  const Graph& graph = program.compiled().graph;
  const Paths own = own_paths(graph);
  const auto place_at = [&](const std::string& path) {
    const auto node = std::ranges::find(own, path) - own.begin();
    return place_before(graph, own, static_cast<std::size_t>(node));
  };
  CHECK(place_at("blocks.0.out") == "between blocks.0.in and blocks.0.out");
  CHECK(place_at("blocks.1.in") == "between blocks.0 and blocks.1");
  CHECK(place_at("scale") == "between blocks and scale");
  CHECK(place_before(graph, own, 1).starts_with("before aten::t (op:1, near blocks.0.in)"));
  const std::size_t last = graph.nodes.size() - 1;
  CHECK(place_before(graph, own, last)
            .ends_with("before aten::mean (op:" + std::to_string(last) + ", near shift)"));
}

TEST_CASE("state is found by its path and the paths above", "[compiler][graph]") {
  CHECK(is_below("layers.3.weight", "layers.3"));
  CHECK(is_below("layers.3", "layers.3"));
  CHECK_FALSE(is_below("layers.30.weight", "layers.3"));
  CHECK_FALSE(is_below("layers", "layers.3"));
  CHECK(paths_above("layers.3.norm.bias") == Paths{"layers", "layers.3", "layers.3.norm"});
  CHECK(paths_above("scale").empty());
  const Program program = stack_program();
  const Graph& graph = program.compiled().graph;
  int parameters = 0, buffers = 0;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const std::string* name = name_of_state(graph, ValueId(v));
    parameters += graph.values[v].kind == ValueKind::Parameter ? 1 : 0;
    buffers += name != nullptr && *name == "shift" ? 1 : 0;
    CHECK((name != nullptr) == (graph.values[v].kind == ValueKind::Parameter ||
                                graph.values[v].kind == ValueKind::Buffer));
  }
  CHECK(parameters == 9);
  CHECK(buffers == 1);
}

}  // namespace
}  // namespace stagecraft
