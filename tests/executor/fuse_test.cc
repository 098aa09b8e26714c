/// Fused passes: the bits, the strides and the gradients of the operators one by one, whatever the
/// operators are; and what keeps an operator from being fused.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/executor/stage_runtime.h"
#include "stagecraft/compiler/autocast_guard.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/thread_count.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Tensors = std::vector<torch::Tensor>;

constexpr std::int64_t kBatch = 3, kRows = 48, kWidth = 72;  // no whole vectors

torch::Tensor mean_square(torch::Tensor output, torch::Tensor label) {
  return (output.flatten() * label.flatten()[0]).pow(2).mean();
}

/// What a stage makes of one microbatch, and of gradients that come back.
struct Made {
  Tensors forward, whole, input_half, weight_half;
};

Made run(const Program& program, bool fuse) {
  StageProgram stage = program.compiled().partition.stages.at(0);
  stage.fuse = fuse;
  StageRuntime runtime(stage, Sgd{});
  runtime.load(initial_state(program.compiled().graph));
  Tensors inputs;
  torch::manual_seed(3);
  for (const StageInput& input : stage.inputs) {
    inputs.push_back(torch::randn(stage.at(input.value).sizes));
  }
  Made made;
  for (const CellKind kind : {CellKind::Backward, CellKind::BackwardInput}) {
    StageForward forward = runtime.forward(inputs, /*keeps_graphs=*/true, {});
    made.forward = forward.outputs;
    made.forward.push_back(forward.loss);
    StageGradients gradients = runtime.backward(kind, forward.saved, {});
    (kind == CellKind::Backward ? made.whole : made.input_half) = gradients.parameters;
    if (kind == CellKind::BackwardInput) {
      made.weight_half = runtime.backward(CellKind::BackwardWeight, forward.saved, {}).parameters;
    }
  }
  return made;
}

bool same_bits_of(const Tensors& a, const Tensors& b) {
  return std::ranges::equal(a, b, [](const torch::Tensor& x, const torch::Tensor& y) {
    return x.defined() == y.defined() &&
           (!x.defined() || (x.sizes() == y.sizes() && x.scalar_type() == y.scalar_type() &&
                             std::memcmp(x.contiguous().const_data_ptr(),
                                         y.contiguous().const_data_ptr(),
                                         x.nbytes()) == 0));
  });
}

void check_bits(const Program& program) {
  INFO(program.explain());
  const Made plain = run(program, false), fused = run(program, true);
  CHECK(same_bits_of(plain.forward, fused.forward));
  CHECK(same_bits_of(plain.whole, fused.whole));
  CHECK(same_bits_of(plain.input_half, fused.input_half));
  CHECK(same_bits_of(plain.weight_half, fused.weight_half));
}

/// A module of one function and the parameters that it reads.
struct Formula : torch::nn::Module {
  using Function = std::function<torch::Tensor(const torch::Tensor&, const Tensors&)>;

  Formula(Function f, const std::vector<std::vector<std::int64_t>>& shapes)
      : function(std::move(f)) {
    for (const auto& sizes : shapes) {
      weights.push_back(
          register_parameter("w" + std::to_string(weights.size()), torch::randn(sizes) * 0.3));
    }
  }
  torch::Tensor forward(const torch::Tensor& x) { return function(x, weights); }

  Function function;
  Tensors weights;
};

Program compiled(const Formula::Function& function,
                 const std::vector<std::vector<std::int64_t>>& shapes,
                 const std::vector<std::int64_t>& input = {kBatch, kRows, kWidth}) {
  torch::manual_seed(1);
  const auto module = std::make_shared<Formula>(function, shapes);
  return compile(module,
                 {.inputs = {torch::randn(input)},
                  .labels = {torch::ones({input.front()})},
                  .loss = mean_square});
}

const std::vector<std::vector<std::int64_t>> kSquare{{kWidth, kWidth}};

TEST_CASE("norm, rotation, gate and residual sum are fused, with the bits of their operators",
          "[fuse]") {
  const Program program = compiled(
      [](const torch::Tensor& x, const Tensors& w) {
        const auto h = torch::matmul(x, w[0]);
        const auto n = torch::rms_norm(x + h, {kWidth}, w[1], 1e-5);
        const auto q = torch::matmul(n, w[0]).view({kBatch, kRows, 2, kWidth / 2}).transpose(1, 2);
        const auto halves = q.chunk(2, -1);
        const auto turned = q * w[2].cos() + torch::cat({-halves[1], halves[0]}, -1) * w[2].sin();
        const auto y = turned.transpose(1, 2).reshape({kBatch, kRows, kWidth});
        const auto gated = torch::silu(torch::matmul(y, w[0])) * torch::matmul(n, w[0]);
        return torch::matmul(gated + h, w[0]) + n;
      },
      {{kWidth, kWidth}, {kWidth}, {kRows, kWidth / 2}});
  check_bits(program);
  const std::string told = program.explain();
  CHECK_THAT(told, ContainsSubstring("fused: [add rms_norm], forward 7 operators in 1 pass"));
  CHECK_THAT(told, ContainsSubstring("[chunk neg cat mul mul add]"));
  CHECK_THAT(told, ContainsSubstring("[silu mul"));
}

TEST_CASE("a value that is normalized and read again has its gradients added in order", "[fuse]") {
  // Three parts of x's gradient: two of the norm, one of the sum behind the product.
  check_bits(compiled(
      [](const torch::Tensor& given, const Tensors& w) {
        const auto x = torch::matmul(given, w[0]);
        const auto h = torch::matmul(torch::rms_norm(x, {kWidth}, w[1], 1e-5), w[0]);
        return torch::matmul(x + h, w[0]) + x.pow(2);
      },
      {{kWidth, kWidth}, {kWidth}}));
}

TEST_CASE("an operator among those of a region that reads the same value keeps it apart",
          "[fuse]") {
  const Program program = compiled(
      [](const torch::Tensor& given, const Tensors& w) {
        const auto x = torch::matmul(given, w[0]);
        const auto a = torch::tanh(x) * 2.0;
        const auto between = torch::matmul(x, w[0]);
        return between + torch::matmul(a + x, w[0]);
      },
      kSquare);
  check_bits(program);
  CHECK_THAT(program.explain(), ContainsSubstring("would be added in another order"));
}

TEST_CASE("every operator that blocks compute has the bits it has alone, at every length",
          "[fuse]") {
  const auto name = GENERATE(values<std::string>(
      {"exp", "log",  "tanh",   "sigmoid", "silu",       "gelu",        "gelu tanh",
       "erf", "sin",  "sqrt",   "rsqrt",   "reciprocal", "relu",        "clamp",
       "abs", "pow",  "where",  "masked",  "softmax",    "log_softmax", "mean",
       "sum", "amax", "double", "maximum", "alpha",      "slices",      "half"}));
  const auto width = GENERATE(8, 72, 344, 1000);
  const std::map<std::string, std::function<torch::Tensor(const torch::Tensor&)>> functions = {
      {"exp", [](const auto& x) { return torch::exp(x * 0.5); }},
      {"log", [](const auto& x) { return torch::log(x * x + 1.0); }},
      {"tanh", [](const auto& x) { return torch::tanh(x * 2.0); }},
      {"sigmoid", [](const auto& x) { return torch::sigmoid(x * 2.0); }},
      {"silu", [](const auto& x) { return torch::silu(x * 2.0); }},
      {"gelu", [](const auto& x) { return torch::gelu(x * 2.0); }},
      {"gelu tanh", [](const auto& x) { return torch::gelu(x * 2.0, "tanh"); }},
      {"erf", [](const auto& x) { return torch::erf(x * 2.0); }},
      {"sin", [](const auto& x) { return torch::sin(x * 2.0) + torch::cos(x); }},
      {"sqrt", [](const auto& x) { return torch::sqrt(x * x + 0.1); }},
      {"rsqrt", [](const auto& x) { return torch::rsqrt(x * x + 0.1); }},
      {"reciprocal", [](const auto& x) { return torch::reciprocal(x * x + 0.1); }},
      {"relu", [](const auto& x) { return torch::relu(x - 0.2); }},
      {"clamp", [](const auto& x) { return torch::clamp(x * 3.0, -1.0, 0.5); }},
      {"abs", [](const auto& x) { return torch::abs(x) + 1.0; }},
      {"pow", [](const auto& x) { return torch::pow(x * x + 0.5, 1.7); }},
      {"where", [](const auto& x) { return torch::where(x > 0.1, x * 2.0, x - 1.0); }},
      {"masked", [](const auto& x) { return (x * 2.0).masked_fill(x < 0.0, -3.0); }},
      {"softmax", [](const auto& x) { return torch::softmax(x * 2.0, -1) * x; }},
      {"log_softmax", [](const auto& x) { return torch::log_softmax(x * 2.0, -1) + x; }},
      {"mean", [](const auto& x) { return x - x.mean({-1}, true); }},
      {"sum", [](const auto& x) { return x / (x * x).sum({-1}, true); }},
      {"amax", [](const auto& x) { return x - x.amax({-1}, true); }},
      {"double", [](const auto& x) { return (x.to(torch::kDouble) * 0.3).to(torch::kFloat) + x; }},
      {"maximum", [](const auto& x) { return torch::maximum(x, x * x - 0.3); }},
      {"alpha", [](const auto& x) { return torch::add(x, x * x, 0.7).sub(x, 0.3); }},
      {"slices",
       [](const auto& x) {
         const auto half = x.size(-1) / 2;
         return torch::cat({x.slice(-1, half) * 2.0, -x.slice(-1, 0, half)}, -1);
       }},
      {"half",
       [](const auto& x) { return torch::silu(x.to(torch::kBFloat16) * 2.0).to(torch::kFloat); }},
  };
  CAPTURE(name, width);
  const Program program = compiled(
      [&, of = functions.at(name)](const torch::Tensor& x, const Tensors& w) {
        return torch::matmul(of(torch::matmul(x, w[0])), w[0]);
      },
      {{width, width}},
      {5, 131, width});  // the last block is short, and ends amid a vector
  check_bits(program);
}

TEST_CASE("operators on rows that lie apart in memory have their bits", "[fuse]") {
  const bool last_first = GENERATE(false, true);
  check_bits(compiled(
      [=](const torch::Tensor& given, const Tensors& w) {
        const auto x = torch::matmul(given, w[0]).view({kBatch, kRows, 3, kWidth / 3});
        const auto y = last_first ? x.transpose(2, 3) : x.transpose(1, 2);
        return (torch::silu(y * 2.0 + 1.0) * y).sum();
      },
      kSquare));
}

/// Chains drawn at random: of values made so far, with sums of several dimensions as factors,
/// views, more than one reader, and products in between.
torch::Tensor drawn(std::uint64_t seed, const torch::Tensor& given, const Tensors& w) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  Tensors made{torch::matmul(given, w[0])};
  const auto any = [&] {
    return made[made.size() - 1 - below(std::min<std::size_t>(3, made.size()))];
  };
  for (int i = 0; i < 14; ++i) {
    const torch::Tensor x = any(), y = any();
    switch (below(13)) {
      case 0:
        made.push_back(x + y);
        break;
      case 1:
        made.push_back(x * torch::sigmoid(y));
        break;
      case 2:
        made.push_back(torch::rms_norm(x, {kWidth}, w[1], 1e-5));
        break;
      case 3:
        made.push_back(torch::tanh(x) - y);
        break;
      case 4:
        made.push_back(x * w[1]);
        break;
      case 5:
        made.push_back(x * w[2] + y);
        break;
      case 6:
        made.push_back(torch::matmul(x, w[0]));
        break;
      case 7:
        made.push_back(torch::cat({x.chunk(2, -1)[1], y.chunk(2, -1)[0]}, -1));
        break;
      case 8:
        made.push_back(x / (1.0 + x.pow(2).mean({-1}, true)));
        break;
      case 9:
        made.push_back(torch::softmax(x, -1) * y);
        break;
      case 10:
        made.push_back(torch::where(x > y, x, y * 0.5));
        break;
      case 11:
        made.push_back(x.transpose(0, 1).contiguous().transpose(0, 1) + y);
        break;
      default:
        made.push_back(torch::gelu(x));
        break;
    }
  }
  return made.back() + made[made.size() / 2] + made.front();
}

TEST_CASE("random chains have the bits of their operators, forward and backward", "[fuse]") {
  const auto seed = GENERATE(range(0, 60));
  CAPTURE(seed);
  check_bits(
      compiled([=](const torch::Tensor& x,
                   const Tensors& w) { return drawn(static_cast<std::uint64_t>(seed), x, w); },
               {{kWidth, kWidth}, {kWidth}, {kRows, kWidth}}));
}

TEST_CASE("with several of LibTorch's threads fused chains have the bits of as many", "[fuse]") {
  const auto threads = GENERATE(2, 3);
  const auto width = GENERATE(256, 264);
  const Program program = compiled(
      [](const torch::Tensor& x, const Tensors& w) {
        const auto h = torch::matmul(x, w[0]);
        return torch::rms_norm(torch::silu(h) * h + x, {x.size(-1)}, w[1], 1e-5);
      },
      {{width, width}, {width}},
      {4, 129, width});
  std::thread([&] {
    set_own_thread_count(threads);
    check_bits(program);
  }).join();
}

TEST_CASE("under autocast casts are part of the chain", "[fuse]") {
  const AutocastGuard as_before;
  AutocastGuard::set({.enabled = true, .dtype = at::kBFloat16});
  const Program program = compiled(
      [](const torch::Tensor& x, const Tensors& w) {
        const auto h = torch::matmul(x, w[0]);
        return torch::matmul(torch::silu(h) * torch::rms_norm(h + x, {kWidth}, w[1], 1e-5), w[2]);
      },
      {{kWidth, kWidth}, {kWidth}, {kWidth, kWidth}});
  AutocastGuard::set({});
  check_bits(program);
}

TEST_CASE("a fused stage keeps less", "[fuse]") {
  const auto formula = [](const torch::Tensor& x, const Tensors& w) {
    const auto h = torch::matmul(x, w[0]);
    const auto n = torch::rms_norm(x + h, {kWidth}, w[1], 1e-5);
    return torch::matmul(torch::silu(torch::matmul(n, w[0])) * torch::matmul(n, w[0]), w[0]);
  };
  torch::manual_seed(1);
  const auto module = std::make_shared<Formula>(
      formula, std::vector<std::vector<std::int64_t>>{{kWidth, kWidth}, {kWidth}});
  const auto kept = [&](bool fuse) {
    return compile(module,
                   {.inputs = {torch::randn({kBatch, kRows, kWidth})},
                    .labels = {torch::ones({kBatch})},
                    .loss = mean_square,
                    .fuse = fuse})
        .compiled()
        .partition.stages.at(0)
        .saved_bytes;
  };
  // Not kept: x / rms, which the norm's weight is multiplied with.
  const std::int64_t activation = kBatch * kRows * kWidth * 4;
  CHECK(kept(true) <= kept(false) - activation);
}

TEST_CASE("what keeps an operator out of a region is told", "[fuse]") {
  const auto told = [](const Formula::Function& of) { return compiled(of, kSquare).explain(); };
  CHECK_THAT(told([](const torch::Tensor& x, const Tensors& w) {
               auto h = torch::matmul(x, w[0]) * 2.0;
               const auto y = torch::tanh(h);
               return h.add_(1.0) + y;
             }),
             ContainsSubstring("is written in place"));
  CHECK_THAT(told([](const torch::Tensor& x, const Tensors& w) {
               return torch::matmul(torch::tanh(torch::matmul(x, w[0])), w[0]);
             }),
             ContainsSubstring("no neighbour computes over the same rows"));
  CHECK_THAT(told([](const torch::Tensor& x, const Tensors& w) {
               const auto h = torch::matmul(x, w[0]);
               return h - h.mean({1}, true);
             }),
             ContainsSubstring("its result has other rows than what it reads"));
  CHECK_THAT(told([](const torch::Tensor& x, const Tensors& w) {
               const auto halves = (torch::matmul(x, w[0]) * 2.0).chunk(2, -1);
               return torch::matmul(halves[0], w[0].slice(0, 0, kWidth / 2)) + halves[1].sum();
             }),
             ContainsSubstring("its view is read outside of the region"));
}

}  // namespace
}  // namespace stagecraft
