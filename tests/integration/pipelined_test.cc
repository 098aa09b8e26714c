/// Tests one module in a pipeline inside the caller's own loop: it trains as without the pipeline,
/// in threads and in processes, and wrong use is refused.
#include "stagecraft/actors/trainer/pipelined.h"

#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {
// Names of other tests in the same file of the build would meet these.
namespace pipelined_cases {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kWidth = 6;
constexpr int kRows = 12;

/// Middle is what is pipelined: it has two inputs, and a connection around a stage.
struct Middle : torch::nn::Module {
  torch::nn::Linear down{register_module("down", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear deep{register_module("deep", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear up{register_module("up", torch::nn::Linear(2 * kWidth, kWidth))};

  at::Tensor forward(at::Tensor x, at::Tensor text) {
    const auto h = stage("down", [&] { return torch::tanh(down(x)); });
    const auto d = stage("deep", [&] { return torch::tanh(deep(h + text)); });
    return stage("up", [&] { return up(torch::cat({d, h}, 1)); });
  }
};

/// Two has two results, of which the caller may leave one out.
struct Two : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kWidth, kWidth))};

  std::tuple<at::Tensor, at::Tensor> forward(at::Tensor x) {
    const auto h = stage("in", [&] { return torch::tanh(in(x)); });
    return {h * 2, stage("out", out, h)};
  }
};

/// Mean has a result without rows.
struct Mean : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  at::Tensor forward(at::Tensor x) { return in(x).mean(); }
};

at::Tensor rows(int step) {
  const auto count = at::arange(kRows * kWidth, at::kFloat);
  return at::sin(count * (step + 1)).reshape({kRows, kWidth});
}

PipelinedOptions usual() {
  return {.inputs = {rows(0), rows(1)},
          .microbatches = kMicrobatches,
          .optimizer = Sgd{.lr = 0.1},
          .trainer = {.seed = 5}};
}

std::shared_ptr<Middle> middle() {
  torch::manual_seed(4);
  return std::make_shared<Middle>();
}

/// Trains in the caller's loop, with frozen parts around the module; returns the losses.
std::vector<double> train(
    const std::function<at::Tensor(at::Tensor, at::Tensor)>& call,
    const std::function<void()>& update = [] {}) {
  torch::manual_seed(9);
  torch::nn::Linear encoder(kWidth, kWidth), decoder(kWidth, 1);
  for (at::Tensor& parameter : decoder->parameters()) {
    parameter.set_requires_grad(false);
  }
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    at::Tensor x, text;
    {
      const torch::NoGradGuard frozen;
      x = encoder(rows(step));
      text = torch::tanh(encoder(rows(step + 5)));
    }
    const at::Tensor made = decoder(call(x, text));
    const at::Tensor loss = torch::mse_loss(made, rows(step).sum(1, true)) + made.mean().square();
    loss.backward();
    update();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

void check_state(const StateDict& found, const torch::nn::Module& expected) {
  for (const auto& [name, tensor] : found) {
    CHECK_THAT((tensor - expected.named_parameters()[name]).abs().max().item<double>(),
               Catch::Matchers::WithinAbs(0, 1e-6));
  }
}

TEST_CASE("a pipelined module trains in the caller's loop as without a pipeline",
          "[integration][pipelined]") {
  const auto plain = middle();
  torch::optim::SGD optimizer(plain->parameters(), 0.1);
  const auto expected =
      train([&](const at::Tensor& x, const at::Tensor& text) { return plain->forward(x, text); },
            [&] {
              optimizer.step();
              optimizer.zero_grad();
            });
  auto unet = pipelined(Cluster::local(3), middle(), usual());
  const auto found = train(std::ref(unet));
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK_THAT(found[i], Catch::Matchers::WithinRel(expected[i], 1e-5));
  }
  check_state(unet.trainer().state_dict(), *plain);
  CHECK(unet.last_step().step == 3);
  CHECK(unet.last_step().gradient_norm > 0);

  const torch::NoGradGuard none;
  const at::Tensor predicted = unet(rows(1), rows(2));
  CHECK_THAT((predicted - plain->forward(rows(1), rows(2))).abs().max().item<double>(),
             Catch::Matchers::WithinAbs(0, 1e-5));
}

TEST_CASE("a pipelined module has the same bits in processes",
          "[integration][pipelined][processes]") {
  auto threads = pipelined(Cluster::local(3), middle(), usual());
  auto processes = pipelined(Cluster::spawn(3), middle(), usual());
  CHECK(train(std::ref(threads)) == train(std::ref(processes)));
  CHECK(same_bits(threads.trainer().state_dict(), processes.trainer().state_dict()));
}

TEST_CASE("a pipelined module may have several results", "[integration][pipelined]") {
  torch::manual_seed(4);
  const auto plain = std::make_shared<Two>();
  torch::manual_seed(4);
  auto two = pipelined(Cluster::local(2),
                       std::make_shared<Two>(),
                       {.inputs = {rows(0)}, .microbatches = 3, .optimizer = Sgd{.lr = 0.1}});
  torch::optim::SGD optimizer(plain->parameters(), 0.1);
  const auto use = [](const at::Tensor& first, const at::Tensor& second, int step) {
    // Once the second result has no gradient.
    (step == 1 ? first.square().mean() : (first * second).mean()).backward();
  };
  for (int step = 0; step < 3; ++step) {
    const std::vector<at::Tensor> results = two.all({rows(step)});
    use(results[0], results[1], step);
    const auto [first, second] = plain->forward(rows(step));
    use(first, second, step);
    optimizer.step();
    optimizer.zero_grad(/*set_to_none=*/false);
  }
  check_state(two.trainer().state_dict(), *plain);
  CHECK_THAT(refusal([&] { (void)two(rows(0)); }), ContainsSubstring("has 2 results: call all()"));
}

TEST_CASE("a result that is dropped drops its step (PI-3)", "[integration][pipelined]") {
  auto unet = pipelined(Cluster::local(3), middle(), usual());
  auto other = pipelined(Cluster::local(3), middle(), usual());
  const StateDict before = unet.trainer().state_dict();
  { const at::Tensor dropped = unet(rows(0), rows(1)); }
  const at::Tensor waits = unet(rows(2), rows(3));
  CHECK_THAT(refusal([&] { (void)unet(rows(0), rows(1)); }),
             ContainsSubstring("waits for its backward"));
  CHECK_THAT(refusal([&] { (void)unet.trainer(); }), ContainsSubstring("waits for its backward"));
  {
    const torch::NoGradGuard none;
    CHECK_THAT(refusal([&] { (void)unet(rows(0), rows(1)); }),
               ContainsSubstring("waits for its backward"));
  }
  waits.square().mean().backward();
  CHECK(unet.last_step().step == 1);
  const at::Tensor same = other(rows(2), rows(3));
  same.square().mean().backward();
  CHECK(same_bits(unet.trainer().state_dict(), other.trainer().state_dict()));
  CHECK_FALSE(same_bits(unet.trainer().state_dict(), before));
  CHECK_THAT(refusal([&] { waits.square().mean().backward(); }), ContainsSubstring("second time"));
  {
    auto gone = pipelined(Cluster::local(3), middle(), usual());
    (void)gone(rows(0), rows(1));
  }
}

TEST_CASE("a backward that comes too late fails, and leaves the ranks",
          "[integration][pipelined]") {
  PipelinedOptions options = usual();
  options.trainer.step_deadline = std::chrono::seconds(2);
  options.recompute = Recompute::stages();
  auto unet = pipelined(Cluster::local(3), middle(), options);
  const at::Tensor late = unet(rows(0), rows(1));
  while (true) {
    try {
      (void)unet.trainer();
      break;  // the step is over
    } catch (const Error&) {
      std::this_thread::yield();
    }
  }
  auto other = pipelined(Cluster::local(3), middle(), usual());
  const at::Tensor expected = other(rows(0), rows(1));
  expected.square().mean().backward();
  const at::Tensor next = unet(rows(0), rows(1));
  CHECK_THAT(
      thrown_error([&] { late.mean().backward(); }).what(),  // and gives the next run nothing
      ContainsSubstring("not done within 2000 ms") || ContainsSubstring("deadline"));
  next.square().mean().backward();
  CHECK(unet.last_step().step == 1);
  CHECK(same_bits(unet.trainer().state_dict(), other.trainer().state_dict()));
}

TEST_CASE("a pipelined module is refused what it cannot do", "[integration][pipelined][refusals]") {
  const auto refused = [](PipelinedOptions options) {
    return refusal([&] { (void)pipelined(Cluster::local(3), middle(), options); });
  };
  PipelinedOptions options = usual();
  options.schedule = "1f1b";
  CHECK_THAT(refused(options),
             ContainsSubstring("\"1f1b\" runs a backward before all forwards") &&
                 ContainsSubstring("sc::on_driver"));
  options = usual();
  options.trainer.loss_scaling = LossScaling{};
  CHECK_THAT(refused(options), ContainsSubstring("loss_scaling"));
  auto unet = pipelined(Cluster::local(3), middle(), usual());
  CHECK_THAT(refusal([&] { (void)unet(rows(0).narrow(0, 0, 10), rows(1).narrow(0, 0, 10)); }),
             ContainsSubstring("10 samples for 4 microbatches"));
  CHECK_THAT(
      refusal([&] {
        (void)pipelined(
            Cluster::local(1), std::make_shared<Mean>(), {.inputs = {rows(0)}, .microbatches = 2});
      }),
      ContainsSubstring("result 0 of the pipelined module has the shape [6] for 6 samples") ||
          ContainsSubstring("return results with a row for each sample"));
  CHECK_THAT(refusal([&] { (void)unet(rows(0).requires_grad_(), rows(1)); }),
             ContainsSubstring("gives no gradient to its inputs"));
  const Pipelined moved = std::move(unet);
  CHECK_THAT(refusal([&] { (void)unet(rows(0), rows(1)); }), ContainsSubstring("moved from"));
}

TEST_CASE("a lost rank ends the caller's call, and its backward",
          "[integration][pipelined][processes]") {
  const Cluster cluster = Cluster::spawn(3);
  PipelinedOptions options = usual();
  options.trainer.mirror = true;
  auto unet = pipelined(cluster, middle(), options);
  const auto kill_one = [&] { ::kill(static_cast<pid_t>(cluster.workers()[1].process), SIGKILL); };
  unet(rows(0), rows(1)).square().mean().backward();
  const at::Tensor made = unet(rows(0), rows(1));
  kill_one();
  CHECK(thrown_error([&] { made.square().mean().backward(); }).code() == Errc::WorkerLost);
  cluster.replace(Rank(1));
  CHECK(unet.trainer().recover() == 1);
  kill_one();
  CHECK(thrown_error([&] { (void)unet(rows(0), rows(1)); }).code() == Errc::WorkerLost);
}

}  // namespace pipelined_cases
}  // namespace
}  // namespace stagecraft::tests
