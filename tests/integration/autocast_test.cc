/// Tests that training under autocast has the bits of a plain loop whose autocast cache is off.
#include <map>
#include <string>
#include <vector>

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

constexpr int kAutocastMicrobatches = 2;
constexpr double kAutocastRate = 0.5;

/// Each of its two stages uses its weight twice.
struct UsedTwiceInStages : torch::nn::Module {
  torch::Tensor lower, upper;

  UsedTwiceInStages() {
    torch::manual_seed(5);
    lower = register_parameter("lower", torch::randn({16, 16}) / 4);
    upper = register_parameter("upper", torch::randn({16, 16}) / 4);
  }
  static torch::Tensor twice(const torch::Tensor& x, const torch::Tensor& weight) {
    return torch::matmul(torch::tanh(torch::matmul(x, weight)), weight);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = stage("lower", [&] { return twice(x, lower); });
    return stage("upper", [&] { return twice(torch::tanh(h), upper); });
  }
};

torch::Tensor mean_square_of(const torch::Tensor& output) {
  return output.to(torch::kFloat).square().mean();
}

/// Computes in bfloat16 where that is safe, while it lives.
class Narrow {
 public:
  explicit Narrow(bool cache) {
    at::autocast::set_autocast_cache_enabled(cache);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Narrow() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    at::autocast::set_autocast_cache_enabled(true);
  }
  Narrow(const Narrow&) = delete;
  Narrow& operator=(const Narrow&) = delete;
};

std::vector<torch::Tensor> narrow_batches() {
  torch::manual_seed(7);
  return {torch::randn({8, 16}), torch::randn({8, 16}), torch::randn({8, 16})};
}

/// Returns the weights after training with LibTorch alone.
std::vector<torch::Tensor> plain_narrow_loop(bool cache) {
  const SingleThreaded alone;  // as a rank computes
  UsedTwiceInStages model;
  for (const torch::Tensor& batch : narrow_batches()) {
    for (const torch::Tensor& microbatch : batch.chunk(kAutocastMicrobatches)) {
      torch::Tensor loss;
      {
        const Narrow narrow(cache);
        loss = mean_square_of(model.forward(microbatch));
      }
      (loss / kAutocastMicrobatches).backward();
    }
    const torch::NoGradGuard no_grad;
    for (torch::Tensor* weight : {&model.lower, &model.upper}) {
      weight->add_(weight->grad(), -kAutocastRate);
      weight->mutable_grad().reset();
    }
  }
  return {model.lower.detach(), model.upper.detach()};
}

TEST_CASE("under autocast a pipeline has the bits of a loop with autocast's cache off",
          "[integration][autocast]") {
  UsedTwiceInStages model;
  const Program program = [&] {
    const Narrow narrow(/*cache=*/true);
    return compile(model,
                   {.inputs = {narrow_batches()[0]},
                    .loss = mean_square_of,
                    .microbatches = kAutocastMicrobatches});
  }();
  Trainer trainer(
      Cluster::local(2), program, one_f_one_b(2, kAutocastMicrobatches), Sgd{.lr = kAutocastRate});
  for (const torch::Tensor& batch : narrow_batches()) {
    (void)trainer.step({batch}, {}).get();
  }
  const std::vector<torch::Tensor> expected = plain_narrow_loop(/*cache=*/false);
  std::map<std::string, torch::Tensor> found;
  for (const auto& [name, tensor] : trainer.state_dict()) {
    found.emplace(name, tensor);
  }
  CHECK(torch::equal(found.at("lower"), expected[0]));
  CHECK(torch::equal(found.at("upper"), expected[1]));
  // The cache adds up a weight's two gradients in its narrow copy, so this comparison can fail.
  CHECK_FALSE(torch::equal(plain_narrow_loop(/*cache=*/true)[0], expected[0]));
}

}  // namespace
}  // namespace stagecraft::tests
