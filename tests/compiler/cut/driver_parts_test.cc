/// Tests where stages are divided for code on the driver.
#include "stagecraft/compiler/cut/driver_parts.h"

#include <functional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/native/on_driver.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Names = std::vector<std::string>;

at::Tensor doubled(const std::string& name, const at::Tensor& x) {
  return on_driver(
      name, [](const at::Tensor& t) { return t * 2; }, x);
}

/// Has a layer in stage "a", and in stage "b" what the test asks for.
struct Asking : torch::nn::Module {
  using Second = std::function<at::Tensor(at::Tensor h)>;
  explicit Asking(Second s) : second(std::move(s)) {}
  Second second;
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(4, 4))};
  at::Tensor forward(at::Tensor x) {
    const at::Tensor h = stage("a", layer, x);
    return stage("b", [&] { return second(h); });
  }
};

Program asking(Asking::Second second, Cut cut = {}) {
  const auto net = std::make_shared<Asking>(std::move(second));
  return compile(net,
                 {.inputs = {torch::ones({4, 4})},
                  .labels = {},
                  .loss = [](const at::Tensor& y) { return y.square().mean(); },
                  .microbatches = 2,
                  .cut = std::move(cut)});
}

Names names(const Program& program) {
  return program.compiled().assignment.names;
}

TEST_CASE("a stage with code on the driver is divided before and after it",
          "[compiler][driver-parts]") {
  const Program program = asking([](at::Tensor h) { return doubled("code", h.sin()).cos(); });
  CHECK(names(program) == Names{"a", "b", "code", "b.2"});
  CHECK(program.stage_graph().size() == 2);
  CHECK(program.stage_graph().edges() == std::vector<StageGraph::Edge>{{0, 1}});
  const StageParts& parts = program.compiled().assignment.parts;
  CHECK(parts[2].on_driver);
  CHECK(parts[2].stage == StageId(1));
  CHECK_FALSE(parts[3].on_driver);
}

TEST_CASE("code that begins its stage leaves no part before it", "[compiler][driver-parts]") {
  const Program program = asking([](at::Tensor h) { return doubled("code", h).cos(); });
  CHECK(names(program) == Names{"a", "code", "b"});
}

TEST_CASE("calls that need results of others have parts of their own, others share one",
          "[compiler][driver-parts]") {
  const Program program = asking([](at::Tensor h) {
    const at::Tensor s = h.sin();
    const at::Tensor one = doubled("one", s), other = doubled("other", s);
    return doubled("one", (one + other).cos()) + s;
  });
  CHECK(names(program) == Names{"a", "b", "one", "b.2", "one#2", "b.3"});
  CHECK(program.compiled().partition.stages[2].operator_count() == 2);
}

TEST_CASE("a cut without markers is divided likewise", "[compiler][driver-parts]") {
  const Program program =
      asking([](at::Tensor h) { return doubled("code", h.sin()).cos(); }, At{"op:1"});
  CHECK(program.stage_graph().size() == 2);
  CHECK(program.compiled().assignment.parts.size() == 4);
}

TEST_CASE("a balanced cut leaves work beside code on the driver", "[compiler][driver-parts]") {
  for (const int stages : {1, 2, 3}) {
    CAPTURE(stages);
    const Program program = asking(
        [](at::Tensor h) {
          return on_driver(
                     "slow",
                     [](const at::Tensor& t) {
                       at::Tensor sum = t;
                       for (int i = 0; i < 2000; ++i) {
                         sum = sum + t;
                       }
                       return sum;
                     },
                     h.sin())
              .cos()
              .sin();
        },
        Balanced{.stages = stages});
    CHECK(program.stage_graph().size() == stages);
  }
}

TEST_CASE("memory that is written after the code is made after it", "[compiler][driver-parts]") {
  const Program program = asking([](at::Tensor h) {
    const at::Tensor mask = torch::zeros_like(h);
    mask.add_(doubled("code", h));
    return mask * h;
  });
  CHECK(names(program) == Names{"a", "code", "b"});
}

TEST_CASE("memory that is written on both sides of the code is refused",
          "[compiler][driver-parts]") {
  CHECK_THAT(refusal(
                 [] {
                   (void)asking([](at::Tensor h) {
                     at::Tensor mask = h.sin();
                     const at::Tensor found = doubled("code", mask);
                     mask = mask.mul_(found.detach());
                     return mask + h;
                   });
                 },
                 Errc::CompilePartition),
             ContainsSubstring("written in place before and after code of the driver"));
}

}  // namespace
}  // namespace stagecraft
