/// Tests custom autograd functions and hooks: what is kept, under which name, and what is refused.
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

struct AttachedLambda : torch::nn::Module {
  using Body = std::function<torch::Tensor(AttachedLambda&, torch::Tensor)>;
  Body body;
  torch::Tensor weight;
  explicit AttachedLambda(Body b) : body(std::move(b)) {
    weight = register_parameter("weight", torch::randn({4, 4}));
  }
  torch::Tensor forward(torch::Tensor x) {
    return stage("only", [&] { return body(*this, x); });
  }
};

Program compile_attached(const AttachedLambda::Body& body) {
  AttachedLambda module(body);
  const auto x = torch::randn({4, 4});
  return compile(module, {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2});
}

std::string capture_refusal(const AttachedLambda::Body& body) {
  try {
    (void)compile_attached(body);
  } catch (const Error& e) {
    CHECK(e.code() == Errc::CompileCapture);
    return e.what();
  }
  return "compiled";
}

struct Doubled : torch::autograd::Function<Doubled> {
  static torch::Tensor forward(AutogradContext*, torch::Tensor x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 3}; }
};

TEST_CASE("attachments have names, in the graph and in the text that explains a program",
          "[compiler][attachments]") {
  const Program program = compile_attached([](AttachedLambda& m, torch::Tensor x) {
    const auto h = Doubled::apply(torch::matmul(x, m.weight));
    const auto y = h.sin();
    y.register_hook([](torch::Tensor g) { return g * 2; });
    y.register_hook([](torch::Tensor) {});
    return y;
  });
  const auto& attachments = program.compiled().graph.attachments;
  REQUIRE(attachments.size() == 2);
  CHECK_THAT(name_of(attachments[0]),
             ContainsSubstring("custom function") && ContainsSubstring("Doubled"));
  CHECK_THAT(name_of(attachments[1]), ContainsSubstring("2 hooks on %"));
  CHECK_THAT(program.graph_text(),
             ContainsSubstring("Doubled") && ContainsSubstring("2 hooks on %"));
  CHECK_THAT(program.explain(),
             ContainsSubstring("in this process only: ") && ContainsSubstring("Doubled"));
}

TEST_CASE("a custom function in the loss, or as it, is kept", "[compiler][attachments]") {
  testing::Chain module(1);
  const auto x = torch::randn({4, 8});
  const auto loss = [](torch::Tensor o, torch::Tensor y) {
    return Doubled::apply((o - y).pow(2).mean());
  };
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = 2});
  CHECK(program.compiled().graph.attachments.size() == 1);
}

TEST_CASE("hooks that were removed, or that the loss does not reach, are ignored",
          "[compiler][attachments]") {
  const Program program = compile_attached([](AttachedLambda& m, torch::Tensor x) {
    const auto y = torch::matmul(x, m.weight);
    const unsigned hook = y.register_hook([](torch::Tensor g) { return g * 2; });
    y.remove_hook(hook);
    y.sin().register_hook([](torch::Tensor g) { return g * 2; });
    return y;
  });
  CHECK(program.compiled().graph.attachments.empty());
}

struct Dirty : torch::autograd::Function<Dirty> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    x.mul_(2);
    ctx->mark_dirty({x});
    return x;
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 2}; }
};

struct HalfDifferentiable : torch::autograd::Function<HalfDifferentiable> {
  static variable_list forward(AutogradContext* ctx, torch::Tensor x) {
    const auto sign = x.sign();
    ctx->mark_non_differentiable({sign});
    return {x * 2, sign};
  }
  static variable_list backward(AutogradContext*, variable_list g) { return {g[0] * 2}; }
};

struct Hoarder : torch::autograd::Function<Hoarder> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x) {
    ctx->saved_data["all"] = std::vector<torch::Tensor>{x, x * 2};
    return x * 2;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {g[0] * ctx->saved_data["all"].toTensorVector()[1]};
  }
};

TEST_CASE("a custom function that cannot be kept is refused by name", "[compiler][attachments]") {
  CHECK_THAT(capture_refusal([](AttachedLambda& m, torch::Tensor x) {
               return Dirty::apply(torch::matmul(x, m.weight)).sin();
             }),
             ContainsSubstring("Dirty") && ContainsSubstring("mark_dirty"));
  CHECK_THAT(
      capture_refusal([](AttachedLambda& m, torch::Tensor x) {
        return HalfDifferentiable::apply(torch::matmul(x, m.weight))[0].sin();
      }),
      ContainsSubstring("HalfDifferentiable") && ContainsSubstring("mark_non_differentiable"));
  CHECK_THAT(capture_refusal([](AttachedLambda& m, torch::Tensor x) {
               return Hoarder::apply(torch::matmul(x, m.weight)).sin();
             }),
             ContainsSubstring("Hoarder") && ContainsSubstring("save_for_backward"));
}

/// Has a gradient that changes from call to call, so no replay can give the module's.
struct Moody : torch::autograd::Function<Moody> {
  static torch::Tensor forward(AutogradContext*, torch::Tensor x) { return x * 2; }
  static variable_list backward(AutogradContext*, variable_list g) {
    static int calls = 0;
    return {g[0] * ++calls};
  }
};

TEST_CASE(
    "gradients that differ from the module's on a second microbatch are refused, naming the "
    "parameter",
    "[compiler][attachments]") {
  CHECK_THAT(capture_refusal([](AttachedLambda& m, torch::Tensor x) {
               return Moody::apply(torch::matmul(x, m.weight));
             }),
             ContainsSubstring("the gradient of weight on a second microbatch differs"));
}

struct PostHook : torch::autograd::FunctionPostHook {
  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    return outputs;
  }
};

TEST_CASE("hooks that cannot be kept are refused", "[compiler][attachments]") {
  CHECK_THAT(capture_refusal([](AttachedLambda& m, torch::Tensor x) {
               const auto y = torch::matmul(x, m.weight);
               y.grad_fn()->add_post_hook(std::make_unique<PostHook>());
               return y;
             }),
             ContainsSubstring("a hook of its own") && ContainsSubstring("register_hook"));
  CHECK_THAT(capture_refusal([](AttachedLambda& m, torch::Tensor x) {
               auto y = torch::matmul(x, m.weight);
               y.register_hook([](torch::Tensor g) { return g * 2; });
               return y.add_(1) * 2;
             }),
             ContainsSubstring("1 hook on %") && ContainsSubstring("in place"));
}

TEST_CASE(
    "hooks on the module's own parameters are called once by each backward of compile's check",
    "[compiler][attachments]") {
  int runs = 0;
  int calls = 0;
  (void)compile_attached([&](AttachedLambda& m, torch::Tensor x) {
    if (runs++ == 0) {
      m.weight.register_hook([&](torch::Tensor) { ++calls; });
    }
    return torch::matmul(x, m.weight);
  });
  CHECK(calls ==
        2);  // the check of a second microbatch runs two backwards: the module's and the replay's
}

}  // namespace
}  // namespace stagecraft
