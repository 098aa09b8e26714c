/// Tests what a region must do so that ranks can divide its weights.
#include "stagecraft/compiler/lower/check_divided.h"

#include <string>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::divided_plan;
using testing::expert_program;
using testing::ExpertChain;
using torch::Tensor;

Schedule two_rows() {
  return build_schedule("1f1b", {.devices = 2, .microbatches = 2});
}

std::string refused(const Program& program, int copies = 2) {
  return refusal([&] { (void)divided_plan(program, two_rows(), copies); }, Errc::CompilePartition);
}

std::string refused(const ExpertChain::Body& body) {
  return refused(expert_program(2, 4, body));
}

TEST_CASE("experts that see only their own samples and weights can be divided",
          "[compiler][lower][experts]") {
  const auto works = [](const ExpertChain::Body& body) {
    CHECK(verify(divided_plan(expert_program(2, 4, body), two_rows()).plan).empty());
  };
  works(nullptr);
  works([](ExpertChain& m, std::size_t s, const Tensor& in) {
    return torch::einsum("ecd,edf->ecf", {in, m.weights[s]});
  });
  works([](ExpertChain& m, std::size_t s, const Tensor& in) {
    return torch::layer_norm(torch::baddbmm(in, in, m.weights[s]), {ExpertChain::kWidth});
  });
  works([](ExpertChain& m, std::size_t s, const Tensor& in) {
    return torch::matmul(in, m.weights[s]).reshape_as(in);
  });
}

TEST_CASE("a region that cannot be divided is refused, and told why",
          "[compiler][lower][experts][bad-input]") {
  CHECK_THAT(
      refused([](ExpertChain& m, std::size_t s, const Tensor& in) {
        return torch::dropout(torch::bmm(in, m.weights[s]), 0.5, true);
      }),
      ContainsSubstring("chunk 1 of stage \"s0\"") && ContainsSubstring("draws random numbers"));
  CHECK_THAT(refused([](ExpertChain& m, std::size_t s, const Tensor& in) {
               return torch::bmm(in, m.weights[s]).view({4, -1, 8});
             }),
             ContainsSubstring("has sizes as numbers in it"));
  CHECK_THAT(refused([](ExpertChain& m, std::size_t s, const Tensor& in) {
               return torch::bmm(in, m.weights[s]) + torch::ones({4, 3, 8});
             }),
             ContainsSubstring("does not run on a part of its experts"));
  CHECK_THAT(refused([](ExpertChain& m, std::size_t s, const Tensor& in) {
               return torch::softmax(torch::bmm(in, m.weights[s]), 0);
             }),
             ContainsSubstring("each expert must see its own samples"));
  CHECK_THAT(refused([](ExpertChain& m, std::size_t s, const Tensor& in) {
               const Tensor out = torch::bmm(in, m.weights[s]);
               return out - out.mean(1, /*keepdim=*/true);
             }),
             ContainsSubstring("each sample must be computed by itself"));
  CHECK_THAT(refused([](ExpertChain& m, std::size_t s, const Tensor& in) {
               return torch::bmm(in, m.weights[s]) + m.layers[s]->bias;
             }),
             ContainsSubstring("shares the parameter layer0.bias"));
  CHECK_THAT(refused([](ExpertChain& m, std::size_t s, const Tensor& in) {
               return torch::bmm(in, m.weights[s]).sum(1);
             }),
             ContainsSubstring("experts in dimension 0") || ContainsSubstring("makes sizes") ||
                 ContainsSubstring("does not run"));
  const ExpertChain::Body frozen = [](ExpertChain& m, std::size_t s, const Tensor& in) {
    m.weights[s].requires_grad_(false);
    return torch::bmm(in, m.weights[s]);
  };
  CHECK_THAT(refusal([&] { (void)divided_plan(expert_program(2, 4, frozen), two_rows()); },
                     Errc::ScheduleInvalid),
             ContainsSubstring("trains no weights"));
  CHECK_THAT(refused(expert_program(2, 6), 3),
             ContainsSubstring("of sizes [4, 8, 8]") && ContainsSubstring("multiple of the 3"));
}

/// Puts the region where a stage begins, where it ends, or twice in a row.
struct Places : torch::nn::Module {
  explicit Places(int where) : where_(where) {
    weights = register_parameter("weights", torch::randn({4, 8, 8}));
    more = register_parameter("more", torch::randn({4, 8, 8}));
    next = register_parameter("next", torch::randn({4, 8, 8}));
    head = register_module("head", torch::nn::Linear(8, 8));
  }
  Tensor forward(Tensor x) {
    x = stage("s0", [&] { return where_ == 0 ? ep(x, weights) : ep(torch::tanh(x), weights); });
    return stage("s1", [&] { return head(where_ >= 2 ? x : ep(x + 1, more)); });
  }
  Tensor ep(const Tensor& x, const Tensor& w) {
    Tensor out = region("EP", [&] { return torch::bmm(x, w); });
    if (where_ == 3) {
      out = region("EP", [&] { return torch::bmm(out, next); });
    }
    return where_ == 1 ? out : torch::tanh(out);
  }

  int where_;
  Tensor weights, more, next;
  torch::nn::Linear head{nullptr};
};

TEST_CASE("a region has operators of its stage on both sides",
          "[compiler][lower][experts][bad-input]") {
  const auto refused_at = [](int where, Errc code) {
    Places module(where);
    const Tensor x = torch::randn({16, 3, 8});
    const Program program = compile(
        module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 4});
    return refusal([&] { (void)divided_plan(program, two_rows()); }, code);
  };
  CHECK_THAT(refused_at(0, Errc::CompilePartition),
             ContainsSubstring("not in the midst of its stage"));
  CHECK_THAT(refused_at(1, Errc::ScheduleInvalid),
             ContainsSubstring("has a neighbor in another stage"));
  CHECK_THAT(refused_at(2, Errc::ScheduleInvalid), ContainsSubstring("shard {PP:1,EP:*}"));
  CHECK_THAT(refused_at(3, Errc::ScheduleInvalid),
             ContainsSubstring("regions right behind each other"));
}

}  // namespace
}  // namespace stagecraft
