/// Tests the placement of the operators of a model that is captured anew: counterparts, stages that
/// fit, and copies of values that two stages write.
#include "stagecraft/compiler/cut/cut_like.h"

#include <random>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/cut/copy_written.h"
#include "stagecraft/compiler/cut/counterparts.h"
#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/cut/stage_choice.h"
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

Graph row_of(const std::vector<int>& names) {
  Graph graph;
  for (const int name : names) {
    graph.nodes.push_back({.name = std::to_string(name)});
  }
  return graph;
}

int longest_common(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::vector<int>> best(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      best[i + 1][j + 1] = a[i] == b[j] ? best[i][j] + 1 : std::max(best[i][j + 1], best[i + 1][j]);
    }
  }
  return best.back().back();
}

TEST_CASE("counterparts are the longest row that two graphs have in common", "[compiler][cut]") {
  std::mt19937 random(3);
  const auto row = [&] {
    std::vector<int> names(random() % 30);
    for (int& name : names) {
      name = static_cast<int>(random() % 6);
    }
    return names;
  };
  for (int i = 0; i < 200; ++i) {
    const std::vector<int> a = row(), b = row();
    CAPTURE(a, b);
    const std::vector<int> found = counterparts(row_of(a), row_of(b));
    int matched = 0, last = kNoCounterpart;
    for (std::size_t n = 0; n < a.size(); ++n) {
      if (found[n] != kNoCounterpart) {
        ++matched;
        CHECK(found[n] > last);
        last = found[n];
        CHECK(a[n] == b.at(static_cast<std::size_t>(last)));
      }
    }
    CHECK(matched == longest_common(a, b));
  }
}

/// Returns which stage leads to which; `pairs` has the edges of a DAG and those that follow from
/// them.
std::vector<StageSet> leads_to(std::size_t stages,
                               const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  std::vector<StageSet> result(stages, StageSet(stages, false));
  for (const auto& [from, to] : pairs) {
    result[from][to] = true;
  }
  return result;
}

TEST_CASE("groups get stages along which values can flow, or the group that fits none is named",
          "[compiler][cut]") {
  const std::vector<StageSet> chain = leads_to(3, {{0, 1}, {0, 2}, {1, 2}});
  {
    StageChoice choice(chain, 3);  // 0 -> 1 -> 2, the middle one in stage 1
    choice.feed(0, 1);
    choice.feed(1, 2);
    choice.restrict(1, {false, true, false});
    REQUIRE(choice.narrow() == 3);
    CHECK_FALSE(choice.is_open(0, 2));
    CHECK_FALSE(choice.is_open(2, 0));
    CHECK_FALSE(choice.decide(0, 2));
    CHECK(choice.decide(0, 0));
    CHECK(choice.decide(2, 2));
    CHECK(choice.last_open(1) == 1);
  }
  {
    StageChoice choice(chain, 2);
    choice.feed(0, 1);
    choice.restrict(0, {false, false, true});
    choice.restrict(1, {true, true, false});
    CHECK(choice.narrow() < 2);
  }
  {  // Two towers and a head: what both towers read can be in neither, and decisions are undone.
    StageChoice choice(leads_to(4, {{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}}), 3);
    choice.feed(0, 1);
    choice.feed(0, 2);
    choice.restrict(1, {false, true, false, false});
    choice.restrict(2, {false, false, true, false});
    REQUIRE(choice.narrow() == 3);
    CHECK_FALSE(choice.decide(0, 1));
    CHECK(choice.decide(0, 0));
    CHECK(choice.last_open(1) == 1);
  }
}

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
Program cut_at(Module& module, const Cut& cut) {
  const auto x = torch::randn({4, 6});
  return compile(module,
                 {.inputs = {x},
                  .labels = {torch::randn({4, 6})},
                  .loss = mean_square,
                  .microbatches = 2,
                  .cut = cut});
}

TEST_CASE("a stage that writes what another one made in evaluation alone copies it first",
          "[compiler][cut][evaluation]") {
  Positions module;
  const Program program = cut_at(module, At{"position"});
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
  Program whole = cut_at(module, Cut{});
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

TEST_CASE("what no stage trains is a constant of the stage that evaluates with it (EV-3)",
          "[compiler][cut][evaluation]") {
  Swapping module;
  const Program program = cut_at(module, At{"b"});
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

TEST_CASE("a module whose evaluation fits no stages is told the operator and what it uses",
          "[compiler][cut][evaluation]") {
  Swapping module;
  module.swaps = true;
  const Program program = cut_at(module, At{"b"});
  CHECK_THAT(refusal(
                 [&] {
                   (void)program.evaluations()->prediction({torch::randn({4, 6})});
                 },
                 Errc::CompilePartition),
             ContainsSubstring("aten::") && ContainsSubstring("fits no stage"));
}

}  // namespace
}  // namespace stagecraft
