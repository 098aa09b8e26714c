/// Tests how markers cut chains, skips, branches and frozen parts, and the refusals.
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
using Edges = std::vector<std::pair<int, int>>;

template <class Module>
Program compile_square(Module& module, int width = 8) {
  const auto x = torch::randn({4, width});
  return compile(module,
                 {.inputs = {x},
                  .labels = {torch::randn({4, width})},
                  .loss = mean_square,
                  .microbatches = 2});
}

/// Runs a given forward, with two square layers to place.
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

std::string partition_refusal(const Free::Body& body) {
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
  const Program program = compile(
      module,
      {.inputs = {x}, .labels = {torch::randn({4, 3})}, .loss = mean_square, .microbatches = 2});
  CHECK((program.stage_graph().edges() == Edges{{0, 1}, {0, 2}, {1, 2}}));
  const auto& outputs = program.compiled().partition.stages[0].outputs;
  REQUIRE(outputs.size() == 1);
  CHECK((outputs[0].consumers == std::vector<StageId>{StageId(1), StageId(2)}));
  CHECK((outputs[0].gradient_from == std::vector<bool>{true, true}));
  CHECK_THAT(program.explain(),
             ContainsSubstring("stage 0 \"first\"") && ContainsSubstring("-> stage 2 \"last\"") &&
                 ContainsSubstring("gradient back"));
}

TEST_CASE("two encoders get no edge between them", "[compiler][partition]") {
  testing::TwoTowers module;
  const Program program = compile(module,
                                  {.inputs = {torch::randn({4, 6}), torch::randn({4, 5})},
                                   .labels = {torch::randn({4, 3})},
                                   .loss = mean_square,
                                   .microbatches = 2});
  CHECK((program.stage_graph().edges() == Edges{{0, 2}, {1, 2}}));
  CHECK_FALSE(program.stage_graph().needs_input_grad(StageId(0)));
  CHECK_FALSE(program.stage_graph().needs_input_grad(StageId(1)));
}

TEST_CASE("several tensors cross an edge, and one without a gradient owes none",
          "[compiler][partition]") {
  Free module([](Free& m, torch::Tensor x) {
    auto [h, sign] = stage("front", [&] {
      const auto y = m.a(x);
      return std::pair{y, (y > 0).to(torch::kFloat)};
    });
    return stage("back", [&, h = h, sign = sign] { return m.b(h) * sign; });
  });
  const Program program = compile_square(module);
  const auto& inputs = program.compiled().partition.stages[1].inputs;
  const auto crossing = std::ranges::count_if(
      inputs, [](const StageInput& i) { return i.source == StageInput::Source::Stage; });
  const auto owing =
      std::ranges::count_if(inputs, [](const StageInput& i) { return i.owes_gradient; });
  CHECK(crossing == 2);
  CHECK(owing == 1);
}

TEST_CASE("a frozen prefix has no backward, a frozen middle hands gradients through",
          "[compiler][partition]") {
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

TEST_CASE("an operator outside the markers joins its latest operand, or its nearest reader",
          "[compiler][partition]") {
  Free module([](Free& m, torch::Tensor x) {
    const auto scaled = x * 2;  // nothing is before it, so it goes with its reader
    const auto h = stage("front", [&] { return m.a(scaled); });
    const auto y = h.relu();  // with "front"
    return stage("back", [&] { return m.b(y); });
  });
  const Program program = compile_square(module);
  const auto names = [&](int s) {
    std::vector<std::string> result;
    for (const Node& n :
         program.compiled().partition.stages[static_cast<std::size_t>(s)].chunks.front().nodes) {
      result.push_back(n.name);
    }
    return result;
  };
  CHECK(names(0).front() == "aten::mul");
  CHECK(names(0).back() == "aten::relu");
  CHECK(std::ranges::count(names(1), "aten::relu") == 0);
}

TEST_CASE("a parameter of several stages is in each, trains in all and counts once",
          "[compiler][partition][ties]") {
  testing::TiedChain module(3, /*bare_first=*/true);
  const Program program = compile_square(module);
  const auto& stages = program.compiled().partition.stages;
  const auto find = [&](int stage, const std::string& name) {
    const auto& all = stages[static_cast<std::size_t>(stage)].parameters;
    const auto found = std::ranges::find(all, name, &StageParameter::name);
    REQUIRE(found != all.end());
    return *found;
  };
  // The first stage reads "seen" without a gradient, and trains it there with the gradient of the
  // last stage.
  REQUIRE(stages[0].parameters.size() == 2);
  CHECK((find(0, "seen").trained && find(0, "seen").counted));
  CHECK((find(2, "seen").trained && !find(2, "seen").counted));
  CHECK((!find(0, "frozen").trained && !find(1, "frozen").trained));
  CHECK((find(1, "block.weight").counted && !find(2, "block.weight").counted));
  CHECK(find(2, "matrix").counted);
  CHECK(stages[0].buffers.size() + stages[1].buffers.size() + stages[2].buffers.size() == 3);
  CHECK(weight_bytes(stages[0]) == 2 * 8 * 4);

  const StageGraph& graph = program.stage_graph();
  CHECK(graph.needs_weight_grad(StageId(0)));
  CHECK_FALSE(graph.needs_input_grad(StageId(1)));
  std::vector<std::string> tied;
  for (const TiedParameter& parameter : graph.tied()) {
    tied.push_back(parameter.name + (parameter.reduced ? "" : ", not reduced"));
  }
  CHECK((tied == std::vector<std::string>{"seen", "frozen", "block.weight", "block.bias"}));
  CHECK((graph.tied()[1].stages == std::vector<StageId>{StageId(0), StageId(1), StageId(2)}));
  CHECK_THAT(program.explain(),
             ContainsSubstring("seen: one parameter of the stages 0 \"s0\", 2 \"s2\", a copy in "
                               "each; gradients are added once a step") &&
                 ContainsSubstring("frozen: one parameter of the stages 0 \"s0\", 1 \"s1\", 2 "
                                   "\"s2\", a copy in each\n"));
}

TEST_CASE("a hook on a parameter of two stages is refused, naming it and both",
          "[compiler][partition][ties]") {
  CHECK_THAT(partition_refusal([](Free& m, torch::Tensor x) {
               m.a->weight.register_hook([](torch::Tensor g) { return g.clamp(-1, 1); });
               const auto h = stage("front", [&] { return m.a(x); });
               return stage("back", [&] { return m.a(h); });
             }),
             ContainsSubstring("the parameter a.weight has a hook") &&
                 ContainsSubstring("\"front\"") && ContainsSubstring("\"back\""));
}

TEST_CASE(
    "an operator outside the markers joins the operand furthest downstream, not the one made "
    "last",
    "[compiler][partition]") {
  Free module([](Free& m, torch::Tensor x) {
    const auto h = stage("front", [&] { return m.a(x); });
    const auto y = stage("back", [&] { return m.b(h); });
    const auto late = h * 2;  // joins "front", though made after "back"
    return y * late;          // joins "back", though its latest operand is of "front"
  });
  const Program program = compile_square(module);
  CHECK((program.stage_graph().edges() == Edges{{0, 1}}));
  CHECK(program.compiled().partition.stages[0].chunks.front().nodes.back().name == "aten::mul");
}

/// Has a trunk and two heads, side by side or one after the other.
struct TwoHeads : torch::nn::Module {
  bool side_by_side;
  torch::nn::Linear trunk{nullptr}, first{nullptr}, second{nullptr};
  explicit TwoHeads(bool parallel) : side_by_side(parallel) {
    trunk = register_module("trunk", torch::nn::Linear(8, 8));
    first = register_module("first", torch::nn::Linear(8, 8));
    second = register_module("second", torch::nn::Linear(8, 8));
  }
  std::vector<torch::Tensor> forward(torch::Tensor x) {
    const auto h = stage("trunk", [&] { return torch::tanh(trunk(x)); });
    const auto p = stage("first", [&] { return first(h); });
    const auto q = stage("second", [&] { return second(side_by_side ? h : p); });
    return {p, q};
  }
};

TEST_CASE("a loss over two heads joins the one furthest downstream, in any order of its terms",
          "[compiler][partition]") {
  const bool side_by_side = GENERATE(true, false);
  const bool first_term_last = GENERATE(true, false);
  CAPTURE(side_by_side, first_term_last);
  TwoHeads module(side_by_side);
  const auto x = torch::randn({4, 8});
  const auto loss = [&](const Tensors& out, const Tensors& y) {
    const auto term = [&](std::size_t i) { return (out[i] - y[0]).pow(2).mean(); };
    torch::Tensor p = first_term_last ? torch::Tensor() : term(0);
    const torch::Tensor q = term(1);
    p = p.defined() ? p : term(0);
    return p + q;
  };
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = 2});
  const auto& stages = program.compiled().partition.stages;
  CHECK(stages[2].loss != kNoValue);
  CHECK(stages[1].chunks.front().nodes.back().name ==
        "aten::mean");  // the first head keeps its own term
  CHECK((program.stage_graph().edges() ==
         (side_by_side ? Edges{{0, 1}, {0, 2}, {1, 2}} : Edges{{0, 1}, {1, 2}})));
  CHECK_THAT(program.graph_text(), ContainsSubstring("loss       %"));
}

/// Returns how many operators of this name a stage has.
std::ptrdiff_t count(const Program& program, std::size_t stage, std::string_view name) {
  return std::ranges::count(
      program.compiled().partition.stages[stage].chunks.front().nodes, name, &Node::name);
}

TEST_CASE(
    "a value that several stages read and none makes joins the one least far downstream, in any "
    "order of their reads",
    "[compiler][partition]") {
  const bool side_by_side = GENERATE(true, false);
  const bool first_term_last = GENERATE(true, false);
  CAPTURE(side_by_side, first_term_last);
  TwoHeads module(side_by_side);
  const auto x = torch::randn({4, 8});
  const auto loss = [&](const Tensors& out, const Tensors& y) {
    const auto mask = y[0].ne(-1);
    const auto term = [&](std::size_t i) { return (out[i] * mask).square().mean(); };
    torch::Tensor p = first_term_last ? torch::Tensor() : term(0);
    const torch::Tensor q = term(1);
    p = p.defined() ? p : term(0);
    return p + q;
  };
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = 2});
  CHECK((program.stage_graph().edges() ==
         (side_by_side ? Edges{{0, 1}, {0, 2}, {1, 2}} : Edges{{0, 1}, {1, 2}})));
  CHECK(count(program, 1, "aten::ne") == 1);
}

TEST_CASE(
    "a mask that a later stage reads before an operator of an earlier one joins the earlier one",
    "[compiler][partition]") {
  struct Masked : torch::nn::Module {
    torch::nn::Linear a{register_module("a", torch::nn::Linear(8, 8))};
    std::vector<torch::Tensor> forward(torch::Tensor x) {
      const auto mask = x.ne(0);
      const auto h = stage("front", [&] { return a(x); });
      const auto y = stage("back", [&] { return h * mask; });
      return {y, h * mask};
    }
  } module;
  const auto x = torch::randn({4, 8});
  const auto loss = [](torch::Tensor p, torch::Tensor q) { return (p + q).mean(); };
  const Program program = compile(module, {.inputs = {x}, .loss = loss, .microbatches = 2});
  CHECK((program.stage_graph().edges() == Edges{{0, 1}}));
  CHECK(count(program, 0, "aten::ne") == 1);
  CHECK(count(program, 0, "aten::mul") == 1);
}

TEST_CASE("an operator without readers stays beside its operands", "[compiler][partition]") {
  testing::Chain module(2);
  const auto x = torch::randn({4, 8});
  const auto loss = [](torch::Tensor output, torch::Tensor y) {
    const auto target = y.clone();
    target.slice(1, 0, 2).zero_();  // read only through `target`
    (void)target.sum();
    return (output - target).square().mean();
  };
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = 2});
  CHECK((program.stage_graph().edges() == Edges{{0, 1}}));
  CHECK(count(program, 1, "aten::clone") == 1);
  CHECK(count(program, 1, "aten::zero_") == 1);
  CHECK(count(program, 1, "aten::sum") == 1);
}

TEST_CASE("depth decides before the order of entering", "[compiler][partition]") {
  struct Towers : torch::nn::Module {
    torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
    Towers() {
      a = register_module("a", torch::nn::Linear(8, 8));
      b = register_module("b", torch::nn::Linear(8, 8));
      c = register_module("c", torch::nn::Linear(8, 8));
    }
    torch::Tensor forward(torch::Tensor x) {
      const auto p = stage("p1", [&] { return a(x); });
      const auto deep = stage("p2", [&] { return b(p); });
      const auto shallow = stage("q1", [&] { return c(x); });
      return shallow * deep;
    }
  } towers;
  const Program program = compile_square(towers);
  CHECK((program.stage_graph().edges() == Edges{{0, 1}, {2, 1}}));
}

TEST_CASE("an in-place write to a value of another stage is refused, naming both",
          "[compiler][partition]") {
  CHECK_THAT(
      partition_refusal([](Free& m, torch::Tensor x) {
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

TEST_CASE("a batch norm in two stages is refused, naming its buffer and both",
          "[compiler][partition]") {
  struct Twice : torch::nn::Module {
    torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(8))};
    torch::Tensor forward(torch::Tensor x) {
      const auto h = stage("front", [&] { return norm(x); });
      return stage("back", [&] { return norm(h); });
    }
  } module;
  const auto loss = [](torch::Tensor h) { return h.square().mean(); };
  CHECK_THROWS_WITH(
      (void)compile(module, {.inputs = {torch::randn({8, 8})}, .loss = loss, .microbatches = 2}),
      ContainsSubstring("norm.") && ContainsSubstring("\"front\"") &&
          ContainsSubstring("\"back\"") &&
          ContainsSubstring("for example a batch norm, in one stage only"));
}

TEST_CASE("a loss that writes a value of a later stage in place is refused by name",
          "[compiler][partition]") {
  struct Sum : torch::nn::Module {
    torch::nn::Linear a{register_module("a", torch::nn::Linear(8, 8))};
    std::vector<torch::Tensor> forward(torch::Tensor x) {
      const auto h = stage("front", [&] { return a(x); });
      return {h, stage("back", [&] { return h + x; })};
    }
  } module;
  const auto x = torch::randn({4, 8});
  const auto loss = [](torch::Tensor h, torch::Tensor y) { return (h.mul_(2) + y).mean(); };
  CHECK_THROWS_WITH(
      (void)compile(module, {.inputs = {x}, .loss = loss, .microbatches = 2}),
      ContainsSubstring(
          "aten::mul_.Scalar (op:3, near a) of the loss, in stage \"front\" writes") &&
          ContainsSubstring(
              "aten::add.Tensor (op:2, near a) in stage \"back\" also uses its memory"));
}

TEST_CASE("a zero-filled tensor that one stage writes is read by the next",
          "[compiler][partition]") {
  Free module([](Free& m, torch::Tensor x) {
    auto padded = stage("front", [&] {
      auto zeros = torch::zeros({x.size(0), 10});
      zeros.slice(1, 1, 9).copy_(m.a(x));
      return zeros;
    });
    return stage("back", [&] { return m.b(padded.slice(1, 0, 8)) + padded.slice(1, 2, 10); });
  });
  const Program program = compile_square(module);
  CHECK((program.stage_graph().edges() == Edges{{0, 1}}));
  CHECK(program.stage_graph().needs_input_grad(StageId(1)));
}

TEST_CASE("a stage inside a stage and a name used twice are refused", "[compiler][markers]") {
  CHECK_THAT(partition_refusal([](Free& m, torch::Tensor x) {
               return stage("outer", [&] { return m.b(stage("inner", [&] { return m.a(x); })); });
             }),
             ContainsSubstring("\"inner\" is opened inside stage \"outer\""));
  CHECK_THAT(partition_refusal([](Free& m, torch::Tensor x) {
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
  const Node& last = program.compiled().partition.stages[1].chunks.front().nodes.front();
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
