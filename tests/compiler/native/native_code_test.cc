/// Tests the place of a native stage's module in autograd, and its registration.
#include "stagecraft/compiler/native/native_code.h"

#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/native/native_stage.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Tensors = NativeCode::Tensors;

/// Scales `x` as often as its values ask for; counts its forwards and backwards.
struct Scaling : torch::nn::Module {
  torch::Tensor weight = register_parameter("weight", torch::full({3}, 1.5));
  torch::Tensor seen = register_buffer("seen", torch::zeros({}, torch::kLong));
  int backwards = 0;

  std::tuple<torch::Tensor, torch::Tensor> forward(torch::Tensor x) {
    torch::Tensor made = x * weight;
    while (made.abs().max().item<double>() < 10) {
      made = made * weight;
    }
    if (made.requires_grad()) {
      made.register_hook([this](const torch::Tensor& gradient) {
        ++backwards;
        return gradient;
      });
    }
    seen += 1;
    return {made, (made > 0).to(torch::kLong)};
  }
};

NativeCode code_of(const std::shared_ptr<Scaling>& module) {
  return internal::native_code(*module, module);
}

torch::Tensor example() {
  return torch::tensor({1.0, -2.0, 3.0});
}

TEST_CASE("a native module has the gradients of plain LibTorch", "[compiler][native]") {
  const auto module = std::make_shared<Scaling>();
  const torch::Tensor x = example().requires_grad_();
  const Tensors made = run_native("scaling", code_of(module), {x}, {module->weight});
  REQUIRE(made.size() == 2);
  CHECK_FALSE(made[1].requires_grad());
  const Tensors found = torch::autograd::grad({made[0].square().sum()}, {x, module->weight});
  const Tensors expected =
      torch::autograd::grad({std::get<0>(module->forward(x)).square().sum()}, {x, module->weight});
  CHECK(found[0].equal(expected[0]));
  CHECK(found[1].equal(expected[1]));
}

TEST_CASE("its backward runs once, though half of the gradients are asked for later (NV-1)",
          "[compiler][native]") {
  const auto module = std::make_shared<Scaling>();
  const torch::Tensor x = example().requires_grad_();
  const torch::Tensor outer = module->weight.detach().requires_grad_();
  const torch::Tensor sum = run_native("scaling", code_of(module), {x}, {outer})[0].sum();
  const Tensors whole = [&] {
    const torch::Tensor again = run_native("scaling", code_of(module), {x}, {outer})[0].sum();
    return torch::autograd::grad({again}, {x, outer});
  }();
  module->backwards = 0;
  const torch::Tensor first = torch::autograd::grad({sum}, {x}, {}, /*retain_graph=*/true)[0];
  const torch::Tensor second = torch::autograd::grad({sum}, {outer})[0];
  CHECK(module->backwards == 1);
  CHECK(first.equal(whole[0]));
  CHECK(second.equal(whole[1]));
}

TEST_CASE("its backward is not called a second time", "[compiler][native]") {
  const auto module = std::make_shared<Scaling>();
  const torch::Tensor x = example().requires_grad_();
  const torch::Tensor sum = run_native("scaling", code_of(module), {x}, {module->weight})[0].sum();
  (void)torch::autograd::grad({sum}, {x, module->weight}, {}, /*retain_graph=*/true);
  CHECK_THROWS(torch::autograd::grad({sum}, {x, module->weight}));
}

TEST_CASE("an undefined result is refused, as it could not be told from one that is left out",
          "[compiler][native]") {
  struct Half : torch::nn::Module {
    std::vector<torch::Tensor> forward(torch::Tensor x) { return {x, torch::Tensor(), x}; }
  };
  const auto module = std::make_shared<Half>();
  CHECK_THAT(refusal([&] { (void)internal::native_code(*module, module).forward({example()}); }),
             ContainsSubstring("returns an undefined tensor"));
}

TEST_CASE("without gradients it is a plain call", "[compiler][native]") {
  const auto module = std::make_shared<Scaling>();
  const torch::NoGradGuard no_grad;
  const Tensors made = run_native("scaling", code_of(module), {example()}, {module->weight});
  CHECK(made[0].grad_fn() == nullptr);
  CHECK(module->seen.item<std::int64_t>() == 1);
}

struct WritingItself : torch::nn::Module {
  torch::Tensor weight = register_parameter("weight", torch::ones({3}));
  torch::Tensor forward(torch::Tensor x) {
    const torch::NoGradGuard no_grad;
    weight.mul_(2);
    return x.clone();
  }
};

TEST_CASE("code that writes its parameters is refused (NV-4)", "[compiler][native]") {
  const auto module = std::make_shared<WritingItself>();
  const NativeCode code = internal::native_code(*module, module);
  CHECK_THAT(refusal([&] {
               (void)run_native(native_text("doubling"), code, {example()}, {module->weight});
             }),
             ContainsSubstring("\"doubling\" writes its parameter weight in place"));
}

TEST_CASE("a module is made by name, and draws nothing that shows", "[compiler][native]") {
  register_native_stage("test drawing", [] {
    (void)torch::rand({5});
    return std::make_shared<Scaling>();
  });
  torch::manual_seed(3);
  const torch::Tensor expected = torch::rand({2});
  torch::manual_seed(3);
  const NativeCode code = make_native("test drawing");
  CHECK(torch::rand({2}).equal(expected));
  CHECK(code.parameters.size() == 1);
  CHECK(code.trains());
  code.train(false);
  CHECK_FALSE(code.trains());
}

TEST_CASE("a maker's module has no hooks on its parameters", "[compiler][native]") {
  register_native_stage("test hooked", [] {
    auto module = std::make_shared<Scaling>();
    module->weight.register_hook([](const torch::Tensor& gradient) { return gradient; });
    return module;
  });
  CHECK_THAT(refusal([] { (void)make_native("test hooked"); }),
             ContainsSubstring("the parameter weight of the native stage \"test hooked\""));
}

TEST_CASE("a call outside of a program is that of the module", "[compiler][native]") {
  register_native_stage("test plain", [] { return std::make_shared<Scaling>(); });
  Scaling module;
  const c10::InferenceMode serving;
  const auto [made, positive] = native_stage("test plain", module, example());
  CHECK(made.equal(std::get<0>(module.forward(example()))));
  CHECK(positive.equal((made > 0).to(torch::kLong)));
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("stagecraft::native_stage", "");
  torch::jit::Stack stack{
      std::string("test plain"), Tensors{example()}, Tensors{}, Tensors{}, true};
  CHECK_THAT(refusal([&] { op.callBoxed(&stack); }), ContainsSubstring("call it by"));
}

}  // namespace
}  // namespace stagecraft
