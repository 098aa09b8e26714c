/// How markers cut: chains, skips, branches, frozen parts; and what is refused.
#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;
using Edges = std::vector<std::pair<int, int>>;

template <class Module>
Program compile_square(Module& module, int width = 8) {
  const auto x = torch::randn({4, width});
  return compile(module, {.inputs = {x}, .labels = {torch::randn({4, width})}, .loss = mean_square, .microbatches = 2});
}

/// A module whose forward is given, with two square layers to place.
struct Free : torch::nn::Module {
  using Body = std::function<torch::Tensor(Free&, torch::Tensor)>;
  Body body;
  torch::nn::Linear a{nullptr}, b{nullptr};
  explicit Free(Body f) : body(std::move(f)) {
    a = register_module("a", torch::nn::Linear(8, 8));
    b = register_module("b", torch::nn::Linear(8, 8));
  }
  torch::Tensor forward(torch::Tensor x) { return body(*this, x); }
};

std::string refusal(const Free::Body& body) {
  Free module(body);
  try {
    (void)compile_square(module);
  } catch (const Error& e) {
    CHECK(e.code() == Errc::CompilePartition);
    return e.what();
  }
  return "compiled";
}

TEST_CASE("a chain is cut at its markers, the loss joins the last stage", "[compiler][partition]") {
  testing::Chain module(3);
  const Program program = compile_square(module);
  CHECK((program.stage_graph().edges() == Edges{{0, 1}, {1, 2}}));
  CHECK(program.stage_graph().name(StageId(1)) == "s1");
  CHECK(program.compiled().partition.stages[2].loss != kNoValue);
  CHECK(program.compiled().partition.stages[0].loss == kNoValue);
  CHECK(program.compiled().partition.stages[1].saved_bytes > 0);
}

TEST_CASE("a module without markers is one stage", "[compiler][partition]") {
  Free module([](Free& m, torch::Tensor x) { return m.b(torch::relu(m.a(x))); });
  CHECK(compile_square(module).stage_graph().size() == 1);
}

TEST_CASE("a skip connection is an edge of the stage graph", "[compiler][partition]") {
  testing::SkipNet module;
  const auto x = torch::randn({4, 6});
  const Program program =
      compile(module, {.inputs = {x}, .labels = {torch::randn({4, 3})}, .loss = mean_square, .microbatches = 2});
  CHECK((program.stage_graph().edges() == Edges{{0, 1}, {0, 2}, {1, 2}}));
  const auto& outputs = program.compiled().partition.stages[0].outputs;
  REQUIRE(outputs.size() == 1);
  CHECK((outputs[0].consumers == std::vector<StageId>{StageId(1), StageId(2)}));
  CHECK((outputs[0].gradient_from == std::vector<bool>{true, true}));
  CHECK_THAT(program.explain(), ContainsSubstring("stage 0 \"first\"") && ContainsSubstring("-> stage 2 \"last\"") &&
                                    ContainsSubstring("gradient back"));
}

TEST_CASE("two encoders get no edge between them", "[compiler][partition]") {
  testing::TwoTowers module;
  const Program program = compile(module, {.inputs = {torch::randn({4, 6}), torch::randn({4, 5})},
                                           .labels = {torch::randn({4, 3})}, .loss = mean_square, .microbatches = 2});
  CHECK((program.stage_graph().edges() == Edges{{0, 2}, {1, 2}}));
  CHECK_FALSE(program.stage_graph().needs_input_grad(StageId(0)));
  CHECK_FALSE(program.stage_graph().needs_input_grad(StageId(1)));
}

TEST_CASE("several tensors cross an edge, and one without a gradient owes none", "[compiler][partition]") {
  Free module([](Free& m, torch::Tensor x) {
    auto [h, sign] = stage("front", [&] {
      const auto y = m.a(x);
      return std::pair{y, (y > 0).to(torch::kFloat)};
    });
    return stage("back", [&, h = h, sign = sign] { return m.b(h) * sign; });
  });
  const Program program = compile_square(module);
  const auto& inputs = program.compiled().partition.stages[1].inputs;
  const auto crossing = std::ranges::count_if(inputs, [](const StageInput& i) { return i.source == StageInput::Source::Stage; });
  const auto owing = std::ranges::count_if(inputs, [](const StageInput& i) { return i.owes_gradient; });
  CHECK(crossing == 2);
  CHECK(owing == 1);
}

TEST_CASE("a frozen prefix has no backward, a frozen middle hands gradients through", "[compiler][partition]") {
  testing::Chain module(3);
  for (auto& p : module.layers[0]->parameters()) {
    p.requires_grad_(false);
  }
  const Program prefix = compile_square(module);
  CHECK_FALSE(prefix.stage_graph().has_backward(StageId(0)));
  CHECK_FALSE(prefix.stage_graph().needs_input_grad(StageId(1)));

  testing::Chain other(3);
  for (auto& p : other.layers[1]->parameters()) {
    p.requires_grad_(false);
  }
  const Program middle = compile_square(other);
  CHECK(middle.stage_graph().has_backward(StageId(1)));
  CHECK(middle.stage_graph().needs_input_grad(StageId(1)));
  CHECK_FALSE(middle.stage_graph().needs_weight_grad(StageId(1)));
}

TEST_CASE("an operator outside the markers joins its latest operand, or its first consumer", "[compiler][partition]") {
  Free module([](Free& m, torch::Tensor x) {
    const auto scaled = x * 2;  // nothing before it: with the first consumer
    const auto h = stage("front", [&] { return m.a(scaled); });
    const auto y = h.relu();  // with "front"
    return stage("back", [&] { return m.b(y); });
  });
  const Program program = compile_square(module);
  const auto names = [&](int s) {
    std::vector<std::string> result;
    for (const Node& n : program.compiled().partition.stages[static_cast<std::size_t>(s)].nodes) {
      result.push_back(n.name);
    }
    return result;
  };
  CHECK(names(0).front() == "aten::mul");
  CHECK(names(0).back() == "aten::relu");
  CHECK(std::ranges::count(names(1), "aten::relu") == 0);
}

TEST_CASE("a parameter of two stages is V33, naming it and both", "[compiler][partition]") {
  CHECK_THAT(refusal([](Free& m, torch::Tensor x) {
               const auto h = stage("front", [&] { return m.a(x); });
               return stage("back", [&] { return m.a(h); });
             }),
             ContainsSubstring("V33") && ContainsSubstring("a.weight") && ContainsSubstring("\"front\"") &&
                 ContainsSubstring("\"back\""));
}

TEST_CASE("stages that need each other are V32, naming both", "[compiler][partition]") {
  CHECK_THAT(refusal([](Free& m, torch::Tensor x) {
               const auto h = stage("front", [&] { return m.a(x); });
               const auto y = stage("back", [&] { return m.b(h); });
               const auto late = h * 2;  // joins "front", though made after "back"
               return late * y;          // follows its latest operand into "front", and reads "back"
             }),
             ContainsSubstring("V32") && ContainsSubstring("\"front\" reads from \"back\"") &&
                 ContainsSubstring("\"back\" reads from \"front\""));
}

TEST_CASE("writing in place what another stage made or reads is refused, naming both", "[compiler][partition]") {
  CHECK_THAT(refusal([](Free& m, torch::Tensor x) {
               auto h = stage("front", [&] { return m.a(x); });
               return stage("back", [&] { return m.b(h.mul_(2)); });
             }),
             ContainsSubstring("mul_") && ContainsSubstring("\"front\"") && ContainsSubstring("\"back\""));
  Free harmless([](Free& m, torch::Tensor x) {
    auto h = stage("front", [&] { return m.a(x).relu_(); });
    return stage("back", [&] { return m.b(h); });
  });
  CHECK(compile_square(harmless).stage_graph().size() == 2);
}

TEST_CASE("a stage inside a stage and a name used twice are refused", "[compiler][markers]") {
  CHECK_THAT(refusal([](Free& m, torch::Tensor x) {
               return stage("outer", [&] { return m.b(stage("inner", [&] { return m.a(x); })); });
             }),
             ContainsSubstring("\"inner\" is opened inside stage \"outer\""));
  CHECK_THAT(refusal([](Free& m, torch::Tensor x) {
               const auto h = stage("same", [&] { return m.a(x); });
               return stage("same", [&] { return m.b(h); });
             }),
             ContainsSubstring("\"same\" is used twice"));
}

TEST_CASE("regions annotate without cutting, and modules are stages too", "[compiler][markers]") {
  Free module([](Free& m, torch::Tensor x) {
    const auto h = stage("front", m.a, x);
    return stage("back", [&] { return region("EP", m.b, h); });
  });
  const Program program = compile_square(module);
  CHECK(program.stage_graph().size() == 2);
  const Node& last = program.compiled().partition.stages[1].nodes.front();
  REQUIRE(last.annotations.size() == 2);
  CHECK((last.annotations[1] == Annotation{"EP", "EP", 0}));
}

TEST_CASE("markers cost nothing but the call outside of capture", "[compiler][markers]") {
  Free module([](Free& m, torch::Tensor x) {
    return stage("outer", [&] { return m.b(stage("inner", [&] { return m.a(x); })); });
  });
  CHECK(module.forward(torch::randn({2, 8})).sizes() == at::IntArrayRef({2, 8}));
  CHECK(open_annotations().empty());
}

}  // namespace
}  // namespace stagecraft
