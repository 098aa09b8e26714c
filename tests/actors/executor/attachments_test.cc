/// Tests user code in a model, custom autograd functions and hooks on tensors: gradients are those
/// of the module for every cut, also with a split backward, and every hook is called once.
#include <atomic>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using testing::mean_square;
using testing::Pipeline;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int kAttachedMicrobatches = 4;
constexpr int kAttachedRows = 8, kAttachedWidth = 6;

/// Returns its input (or a view of it), and negates the gradient.
template <bool kView>
struct Reverse : torch::autograd::Function<Reverse<kView>> {
  static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x, double by) {
    ctx->saved_data["by"] = by;
    return kView ? x.view({-1}).view(x.sizes()) : x;
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    return {g[0] * -ctx->saved_data["by"].toDouble(), torch::Tensor()};
  }
};

/// Saves an input, an intermediate and its own result. Its backward is not the derivative, so
/// skipping it would show.
struct Gate : torch::autograd::Function<Gate> {
  static variable_list forward(AutogradContext* ctx,
                               torch::Tensor x,
                               torch::Tensor y,
                               torch::Tensor unused) {
    const auto inner = torch::sigmoid(y);
    const auto result = x * inner;
    ctx->save_for_backward({x, result});
    ctx->saved_data["inner"] = inner;
    return {result, x + y, unused.sum()};
  }
  static variable_list backward(AutogradContext* ctx, variable_list g) {
    const auto saved = ctx->get_saved_variables();
    const auto inner = ctx->saved_data["inner"].toTensor();
    return {g[0] * inner * 2 + g[1], g[0] * saved[0] * saved[1] + g[1] * 3, torch::Tensor()};
  }
};

struct Free : torch::nn::Module {
  using Body = std::function<torch::Tensor(Free&, torch::Tensor)>;
  Body body;
  torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  explicit Free(Body f) : body(std::move(f)) {
    torch::manual_seed(3);
    a = register_module("a", torch::nn::Linear(kAttachedWidth, kAttachedWidth));
    b = register_module("b", torch::nn::Linear(kAttachedWidth, kAttachedWidth));
    c = register_module("c", torch::nn::Linear(kAttachedWidth, kAttachedWidth));
  }
  torch::Tensor forward(torch::Tensor x) { return body(*this, x); }
};

/// Returns the gradients of the module itself, averaged over the microbatches.
std::map<std::string, torch::Tensor> eager_gradients(Free& module,
                                                     const torch::Tensor& x,
                                                     const torch::Tensor& y) {
  for (auto& p : module.parameters()) {
    p.mutable_grad().reset();
  }
  at::set_num_threads(1);
  for (int m = 0; m < kAttachedMicrobatches; ++m) {
    mean_square(module.forward(x.chunk(kAttachedMicrobatches)[static_cast<std::size_t>(m)]),
                y.chunk(kAttachedMicrobatches)[static_cast<std::size_t>(m)])
        .backward();
  }
  std::map<std::string, torch::Tensor> gradients;
  for (const auto& p : module.named_parameters()) {
    if (p.value().grad().defined()) {
      gradients[p.key()] = p.value().grad() / kAttachedMicrobatches;
    }
  }
  return gradients;
}

std::vector<Schedule> schedules_of(const Program& program) {
  return {gpipe(program.stage_graph(), kAttachedMicrobatches),
          one_f_one_b(program.stage_graph(), kAttachedMicrobatches),
          zb_h1(program.stage_graph().size(), kAttachedMicrobatches)};
}

/// Compiles the body, compares the reference with the module, and every schedule with the
/// reference.
Program check_as_eager(const Free::Body& body) {
  Free module(body);
  const auto x = torch::randn({kAttachedRows, kAttachedWidth}),
             y = torch::randn({kAttachedRows, kAttachedWidth});
  const auto compiled = [&](const Recompute& recompute) {
    return compile(module,
                   {.inputs = {x},
                    .labels = {y},
                    .loss = mean_square,
                    .microbatches = kAttachedMicrobatches,
                    .recompute = recompute});
  };
  const Program program = compiled({});
  Reference reference(program, Sgd{.lr = 0.1}, {.seed = 5});
  const ReferenceStep expected = reference.step({x}, {y});
  CHECK((testing::differing(eager_gradients(module, x, y), reference.gradients()) ==
         std::vector<std::string>{}));
  const Program recomputed = compiled(Recompute::stages());
  for (const Schedule& schedule : schedules_of(program)) {
    for (const Program& run : {program, recomputed}) {
      Pipeline pipeline(run, schedule, {.optimizer = Sgd{.lr = 0.1}});
      const auto outcome = pipeline.step({x}, {y});
      for (const auto& error : outcome.errors) {
        INFO((error ? error->what() : ""));
        REQUIRE_FALSE(error.has_value());
      }
      CHECK((outcome.losses == expected.losses));
      CHECK(
          (testing::differing(pipeline.state(), reference.state()) == std::vector<std::string>{}));
    }
  }
  return program;
}

TEST_CASE("a custom function that returns its input, or a view of it, keeps its backward",
          "[executor][attachments]") {
  check_as_eager([](Free& m, torch::Tensor x) {
    const auto h = stage("front", [&] { return Reverse<false>::apply(torch::tanh(m.a(x)), 0.5); });
    return stage("back", [&] { return m.c(Reverse<true>::apply(torch::tanh(m.b(h)), 2.0)); });
  });
}

TEST_CASE("a custom function keeps what its forward saved, run by run", "[executor][attachments]") {
  check_as_eager([](Free& m, torch::Tensor x) {
    const auto h = stage("front", [&] { return m.a(x); });
    return stage("back", [&] {
      const auto out = Gate::apply(m.b(h), m.c(h), h);
      return out[0] + out[1].sin();
    });
  });
}

TEST_CASE("the result of a custom function may cross to another stage, or be the model's own",
          "[executor][attachments]") {
  check_as_eager([](Free& m, torch::Tensor x) {
    const auto h = stage("front", [&] { return Gate::apply(m.a(x), m.b(x), x)[1]; });
    return stage("back", [&] { return Reverse<false>::apply(m.c(h), 3.0); });
  });
}

TEST_CASE("hooks on intermediate tensors change the gradient", "[executor][attachments]") {
  check_as_eager([](Free& m, torch::Tensor x) {
    const auto h = stage("front", [&] {
      const auto inner = torch::tanh(m.a(x));
      inner.register_hook([](torch::Tensor g) { return g * 2; });
      const auto crossing = m.b(inner) + inner;
      crossing.register_hook(
          [](torch::Tensor g) { return g + 0.125; });  // receives the sum of what both stages send
      crossing.register_hook([](torch::Tensor g) { return g * 0.5; });
      return crossing;
    });
    const auto again = stage("middle", [&] { return torch::sigmoid(h); });
    return stage("back", [&] { return m.c(h) * again; });
  });
}

TEST_CASE("hooks on parameters change the gradient, registered before or in forward",
          "[executor][attachments]") {
  bool registered = false;
  check_as_eager([&](Free& m, torch::Tensor x) {
    if (!registered) {
      registered = true;
      m.a->weight.register_hook([](torch::Tensor g) { return g * 3; });
      m.b->bias.register_hook([](torch::Tensor g) { return g.clamp(-0.01, 0.01); });
    }
    const auto h = stage("front", [&] { return torch::tanh(m.a(x)) + m.a(x); });
    return stage("back", [&] { return m.b(h); });
  });
}

TEST_CASE("a hook is called once per microbatch, also where the backward is split",
          "[executor][attachments]") {
  std::atomic<int> on_input_path{0}, on_weight_path{0}, on_parameter{0};
  bool registered = false;
  const auto body = [&](Free& m, torch::Tensor x) {
    if (!registered) {
      registered = true;
      m.b->weight.register_hook([&](torch::Tensor) { ++on_parameter; });
    }
    const auto h = stage("front", [&] { return torch::tanh(m.a(x)); });
    return stage("back", [&] {
      const auto to_input = m.b(h);  // the frontier: its node leads to h and to the weights of b
      to_input.register_hook([&](torch::Tensor) { ++on_input_path; });
      const auto to_weights = m.c->weight * 2;
      to_weights.register_hook([&](torch::Tensor) { ++on_weight_path; });
      return torch::matmul(to_input, to_weights);
    });
  };
  Free module(body);
  const auto x = torch::randn({kAttachedRows, kAttachedWidth});
  const Program program = compile(module,
                                  {.inputs = {x},
                                   .labels = {x},
                                   .loss = mean_square,
                                   .microbatches = kAttachedMicrobatches,
                                   .recompute = GENERATE(Recompute(), Recompute::stages())});
  for (const Schedule& schedule : schedules_of(program)) {
    Pipeline pipeline(program, schedule, {});
    on_input_path = on_weight_path = on_parameter = 0;
    (void)pipeline.step({x}, {x});
    CHECK(on_input_path == kAttachedMicrobatches);
    CHECK(on_weight_path == kAttachedMicrobatches);
    CHECK(on_parameter == kAttachedMicrobatches);
  }
}

TEST_CASE("a custom function's backward is called once per microbatch, also where it is split",
          "[executor][attachments]") {
  static std::atomic<int> calls;
  struct Counted : torch::autograd::Function<Counted> {
    static torch::Tensor forward(AutogradContext* ctx, torch::Tensor x, torch::Tensor w) {
      ctx->save_for_backward({x, w});
      return torch::matmul(x, w);
    }
    static variable_list backward(AutogradContext* ctx, variable_list g) {
      ++calls;
      const auto saved = ctx->get_saved_variables();
      return {torch::matmul(g[0], saved[1].t()), torch::matmul(saved[0].t(), g[0])};
    }
  };
  // The stage comes after "front", so the second stage owes a gradient and its backward has an
  // input half.
  const Free::Body body = [](Free& m, torch::Tensor x) {
    const auto h = stage("front", [&] { return m.a(x); });
    return stage("back", [&] { return m.c(Counted::apply(h, m.b->weight)); });
  };
  const auto x = torch::randn({kAttachedRows, kAttachedWidth});
  const Program program = check_as_eager(body);
  for (const Schedule& schedule : schedules_of(program)) {
    Pipeline pipeline(program, schedule, {});
    calls = 0;
    (void)pipeline.step({x}, {x});
    CHECK(calls == kAttachedMicrobatches);
  }
}

}  // namespace
}  // namespace stagecraft
