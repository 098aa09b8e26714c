/// Tests buckets: the norm of a gradient, gradients that are taken as they come, and updates that
/// average and clip while they read.
#include "stagecraft/actors/executor/stage/stage_buckets.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <thread>

#include <torch/torch.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/backward.h"
#include "stagecraft/actors/executor/stage/gradient_norm.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/tests/actors/executor/setup/divided_setups.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<torch::Tensor>;

void on_threads(int count, const std::function<void()>& body) {
  std::thread([&] {
    set_own_thread_count(count);
    body();
  }).join();
}

// ---- the norm -----------------------------------------------------------------------------------

TEST_CASE("a gradient's norm is that of double precision, whatever its size and type",
          "[executor][bucket]") {
  torch::manual_seed(1);
  const auto type = GENERATE(torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf);
  for (const std::int64_t size :
       {0L, 1L, 15L, 16L, 17L, kNormBlock - 1, kNormBlock, kNormBlock + 1, 3 * kNormBlock + 5}) {
    CAPTURE(type, size);
    const torch::Tensor sum = torch::randn({size}, torch::kDouble).to(type);
    const double exact = torch::linalg_vector_norm(sum.to(torch::kDouble)).item<double>() / 8.0;
    // Each of `size` additions rounds by at most 2^-53 of the result, and so do LibTorch's.
    const double bound = static_cast<double>(2 * size + 8) * std::exp2(-53);
    CHECK(squared_norm_of_mean(sum, 8.0) == Catch::Approx(exact * exact).epsilon(bound).margin(0));
  }
  const torch::Tensor imaginary = torch::complex(torch::full({2}, 3.0), torch::full({2}, 4.0));
  CHECK(squared_norm_of_mean(imaginary, 1.0) == 50.0);
}

TEST_CASE("GN-1: neither threads nor the place in a buffer change a bit of a norm",
          "[executor][bucket]") {
  torch::manual_seed(2);
  const torch::Tensor buffer = torch::randn({70 * kNormBlock + 100});
  std::vector<double> norms;
  for (const int threads : {1, 2, 3}) {
    on_threads(threads, [&] {
      for (const std::int64_t place : {0, 1, 50}) {
        const torch::Tensor moved = torch::zeros_like(buffer);
        moved.narrow(0, place, 70 * kNormBlock).copy_(buffer.narrow(0, 0, 70 * kNormBlock));
        norms.push_back(squared_norm_of_mean(moved.narrow(0, place, 70 * kNormBlock), 3.0));
      }
    });
  }
  CHECK(norms == std::vector<double>(norms.size(), norms.front()));
}

TEST_CASE("GN-1: squares are added in blocks from the first element on, and blocks as a tree",
          "[executor][bucket][shards]") {
  const auto squares = [](std::int64_t of_a, std::int64_t of_b) {
    torch::Tensor gradient = torch::zeros({4 * kNormBlock - 5});
    gradient[0] = 1.0F;
    gradient.narrow(0, of_a, 2).fill_(std::exp2(-27));  // two squares of 2^-54
    gradient.narrow(0, of_b, 2).fill_(std::exp2(-27));
    std::vector<double> sums{squared_norm_of_mean(gradient, 1.0)};
    for (const std::int64_t cut : {1, 2, 3}) {  // blocks of the first of two ranks
      SquareTree together;
      for (const auto& [begin, end] : {std::pair(std::int64_t{0}, cut * kNormBlock),
                                       std::pair(cut * kNormBlock, gradient.numel())}) {
        const SquareTree part = squares_of(gradient.narrow(0, begin, end - begin), begin);
        for (const SquareTree::Run& run : part.runs()) {
          together.add(run);
        }
      }
      sums.push_back(together.total());
    }
    return sums;
  };
  const auto all = [](double sum) { return std::vector<double>(4, sum); };
  // 1 + 2^-53 is rounded to 1, and 1 + 2^-52 is not.
  CHECK(squares(2 * kNormBlock, 3 * kNormBlock) == all(1 + std::exp2(-52)));
  CHECK(squares(3 * kNormBlock - 2, 3 * kNormBlock) == all(1 + std::exp2(-52)));
  CHECK(squares(2 * kNormBlock - 2, 3 * kNormBlock) == all(1));
  CHECK(squares(2 * kNormBlock - 2, 2 * kNormBlock) == all(1));
}

TEST_CASE("GN-1: ranks that have parts of a gradient add up the bits of its norm",
          "[executor][bucket][shards]") {
  torch::manual_seed(3);
  const auto type = GENERATE(torch::kFloat, torch::kBFloat16, torch::kComplexFloat);
  const std::int64_t blocks = GENERATE(1, 2, 11, 64, 77);
  const torch::Tensor sum = torch::randn({blocks * kNormBlock - 5}, torch::TensorOptions(type));
  const double whole = squares_of(sum, 0).total();
  for (std::int64_t first = 0; first <= blocks; ++first) {
    for (const std::int64_t second : {first, (first + blocks) / 2, blocks}) {
      SquareTree together;
      std::int64_t begin = 0;
      for (const std::int64_t end : {first, second, blocks}) {
        const std::int64_t till = std::min(end * kNormBlock, sum.numel());
        if (begin == till) {
          continue;
        }
        const SquareTree part = squares_of(sum.narrow(0, begin, till - begin), begin);
        const std::int64_t scale = type == torch::kComplexFloat ? 2 : 1;
        const auto runs = SquareTree::runs_of(begin * scale / kNormBlock,
                                              (till * scale + kNormBlock - 1) / kNormBlock);
        REQUIRE(runs.size() == part.runs().size());
        for (std::size_t r = 0; r < runs.size(); ++r) {
          CHECK(runs[r].level == part.runs()[r].level);
          CHECK(runs[r].index == part.runs()[r].index);
          together.add(part.runs()[r]);
        }
        begin = till;
      }
      CHECK(together.total() == whole);
    }
  }
}

TEST_CASE("a norm tells of any element that is not finite, and holds any other",
          "[executor][bucket]") {
  const auto norm_with = [](double element, std::int64_t place, at::ScalarType type) {
    torch::Tensor sum = torch::ones({2 * kNormBlock + 3}, type);
    sum[place] = element;
    return squared_norm_of_mean(sum, 1.0);
  };
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::int64_t place :
       {std::int64_t{0}, kNormBlock - 1, kNormBlock, 2 * kNormBlock + 2}) {
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
      for (const double wrong : {infinity, -infinity, std::nan("")}) {
        CHECK_FALSE(std::isfinite(norm_with(wrong, place, type)));
      }
    }
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16}) {
      for (const double large : {1e20, 1e25, 3e38}) {
        CHECK(norm_with(large, place, type) == Catch::Approx(large * large).epsilon(0.01));
      }
    }
  }
}

// ---- sums over microbatches ---------------------------------------------------------------------

/// Has two parameters that a backward reaches, one of them in two ways, and one that it does not
/// reach.
struct TwoWays {
  Tensors leaves{torch::randn({5, 5}), torch::randn({5}), torch::randn({3})};
  Tensors sums;
  std::vector<torch::autograd::Edge> edges;

  TwoWays() {
    for (torch::Tensor& leaf : leaves) {
      sums.push_back(torch::full_like(leaf, 77.0));
      leaf.requires_grad_();
    }
  }

  Tensors gradients(const torch::Tensor& x) {
    edges.clear();
    for (const torch::Tensor& leaf : leaves) {
      edges.push_back(torch::autograd::impl::gradient_edge(leaf));
    }
    const torch::Tensor h = torch::tanh(x.matmul(leaves[0]) + leaves[1]);
    Saved saved{.leaves = {}, .outputs = {}, .loss = (h.matmul(leaves[0]) * h).sum()};
    return backward(saved, {}, edges).parameters;
  }
};

TEST_CASE("GS-1: gradients that are taken as they come make the sums of those that come together",
          "[executor][bucket]") {
  torch::manual_seed(3);
  TwoWays net;
  GradientSums sums(net.sums, net.leaves);
  Tensors batches, together;
  for (int m = 0; m < 4; ++m) {
    batches.push_back(torch::randn({6, 5}));
  }
  const std::vector<double> weights{1.0, 0.3, 1.0, 2.5};
  for (const std::size_t first : {0, 1}) {  // first the one with weight 1, then the other
    for (const bool taken : {false, true}) {
      sums.begin();
      for (std::size_t m = first; m < batches.size(); ++m) {
        std::optional<GradientSums::Taking> taking;
        const double weight = weights[m];
        taking.emplace(
            sums, std::vector<std::size_t>{0, 2}, taken ? std::optional(weight) : std::nullopt);
        const Tensors gradients = net.gradients(batches[m]);
        taking.reset();
        CHECK(gradients[0].defined() == !taken);
        CHECK(gradients[1].defined());
        sums.add({0, 1, 2}, gradients, weight);
      }
      if (!taken) {
        together.clear();
        for (const torch::Tensor& sum : net.sums) {
          together.push_back(sum.clone());
        }
      }
    }
    for (std::size_t i = 0; i < net.sums.size(); ++i) {
      CHECK(torch::equal(net.sums[i], together[i]));
    }
    CHECK(torch::equal(net.sums[2], torch::zeros({3})));  // no gradient reached it
    CHECK(net.sums[0].abs().max().item<double>() > 0.0);
  }
}

TEST_CASE("sums that a failed step has begun are forgotten", "[executor][bucket]") {
  torch::manual_seed(4);
  TwoWays net;
  GradientSums sums(net.sums, net.leaves);
  const torch::Tensor x = torch::randn({6, 5});
  sums.begin();
  try {
    const GradientSums::Taking taking(sums, {0, 1, 2}, 1.0);
    (void)net.gradients(x);
    throw std::runtime_error("before it is accumulated");
  } catch (const std::runtime_error&) {
  }
  sums.begin();
  const Tensors gradients = net.gradients(x);
  REQUIRE(gradients[0].defined());
  sums.add({0, 1, 2}, gradients, 1.0);
  CHECK(torch::equal(net.sums[0], gradients[0]));
  CHECK(torch::equal(net.sums[1], gradients[1]));
}

// ---- a bucket -----------------------------------------------------------------------------------

Program skip_net() {
  torch::manual_seed(5);
  testing::SkipNet module;
  return compile(module,
                 {.inputs = {torch::randn({4, 6})},
                  .labels = {torch::randn({4, 3})},
                  .loss = testing::mean_square,
                  .microbatches = 2});
}

TEST_CASE("a bucket updates by the mean, clipped, keeps the mean, and leaves what is frozen",
          "[executor][bucket]") {
  const Program program = skip_net();
  const StageProgram& stage = program.compiled().partition.stages[0];
  const bool keeps = GENERATE(false, true);
  StageBuckets bucket(stage,
                      Sgd{.lr = 1.0},
                      {.groups = {{.match = "a.bias", .frozen = true}}, .keep_gradients = keeps});
  torch::manual_seed(6);
  const Tensors first{torch::randn({8, 6}), torch::randn({8})};
  const Tensors second{torch::randn({8, 6}), torch::randn({8})};
  for (int step = 1; step <= 2; ++step) {  // earlier contents are dropped
    const torch::Tensor before = bucket.parameters()[0].detach().clone();
    bucket.begin_step();
    bucket.accumulate(first);
    bucket.accumulate(second, 2.0);
    const torch::Tensor sum = torch::add(first[0], second[0], 2.0);
    const torch::Tensor mean = sum / 3.0;
    const std::vector<SquaredNorm> norms = bucket.squared_norms(3.0);
    REQUIRE(norms.size() == 1);  // PG-2
    CHECK(norms[0].value ==
          Catch::Approx(mean.to(torch::kDouble).square().sum().item<double>()).epsilon(1e-6));
    CHECK(torch::equal(bucket.gradient("a.weight"), sum));
    bucket.update(1.0, {.weight = 3.0, .clip = 0.25}, {step});
    const torch::Tensor applied = bucket.gradient("a.weight");
    CHECK(torch::equal(applied, sum / 12.0));
    CHECK(torch::equal(bucket.parameters()[0], before - applied));
    CHECK(torch::equal(bucket.parameters()[1], torch::zeros({8})));
    REQUIRE(bucket.gradients().size() == 1);
    CHECK(bucket.gradients()[0].name == "a.weight");
    CHECK(torch::equal(bucket.gradients()[0].tensor, keeps ? mean : applied));
  }
}

TEST_CASE("BU-9: a gradient is too large for state that keeps squares, unless the update limits it",
          "[executor][bucket]") {
  const Program program = skip_net();
  const StageProgram& stage = program.compiled().partition.stages[0];
  const double infinity = std::numeric_limits<double>::infinity();
  const auto norm_of = [&](const Optimizer& optimizer, double element, double most) {
    StageBuckets bucket(stage, optimizer);
    bucket.begin_step();
    bucket.accumulate({torch::full({8, 6}, element), torch::zeros({8})});
    return bucket.squared_norms(1.0, /*whole=*/true, {}, most).front().value;
  };
  const CustomOptimizer own{.name = "own", .update = [](const CustomUpdate&) {}};
  for (const Optimizer& keeps :
       {Optimizer(Adam{}), Optimizer(AdamW{}), Optimizer(Adagrad{}), Optimizer(RMSprop{})}) {
    CHECK(norm_of(keeps, 1e25, infinity) == infinity);
    CHECK(norm_of(keeps, 1e25, 1e20) == infinity);
    CHECK(norm_of(keeps, 1e25, 1.0) == Catch::Approx(48e50));
    CHECK(norm_of(keeps, 1e18, infinity) == Catch::Approx(48e36));
  }
  for (const Optimizer& any : {Optimizer(Sgd{.momentum = 0.5}), Optimizer(own)}) {
    CHECK(norm_of(any, 1e25, infinity) == Catch::Approx(48e50));
  }
}

TEST_CASE("clipping scales sums by factors that float cannot hold", "[executor][bucket]") {
  const Program program = skip_net();
  const StageProgram& stage = program.compiled().partition.stages[0];
  StageBuckets bucket(stage, Sgd{.lr = 1.0});
  bucket.begin_step();
  bucket.accumulate({torch::full({8, 6}, 3e38), torch::full({8}, -1e38)});
  bucket.update(1.0, {.weight = 4.0, .clip = 1e-41}, {1});
  CHECK(torch::allclose(bucket.gradient("a.weight"), torch::full({8, 6}, 7.5e-4)));
  CHECK(torch::allclose(bucket.gradient("a.bias"), torch::full({8}, -2.5e-4)));
}

TEST_CASE("an update limits each element of the mean, and keeps the mean as it was",
          "[executor][bucket]") {
  const Program program = skip_net();
  const StageProgram& stage = program.compiled().partition.stages[0];
  StageBuckets bucket(stage, Sgd{.lr = 1.0}, {.keep_gradients = true});
  torch::manual_seed(6);
  const Tensors sums{torch::randn({8, 6}), torch::randn({8})};
  const torch::Tensor before = bucket.parameters()[0].detach().clone();
  bucket.begin_step();
  bucket.accumulate(sums);
  bucket.update(1.0, {.weight = 3.0, .most = 0.25}, {1});
  const torch::Tensor mean = sums[0] / 3.0;
  const torch::Tensor applied = mean.clamp(-0.25, 0.25);
  REQUIRE_FALSE(torch::equal(applied, mean));
  CHECK(torch::equal(bucket.gradient("a.weight"), applied));
  CHECK(torch::equal(bucket.parameters()[0], before - applied));
  CHECK(torch::equal(bucket.gradients()[0].tensor, mean));
}

// ---- shards -------------------------------------------------------------------------------------

/// Its weights have 9000, 6000, and its biases 100 and 60 elements.
struct Wide : torch::nn::Module {
  torch::nn::Linear a{90, 100}, b{100, 60};

  Wide() {
    register_module("a", a);
    register_module("b", b);
  }
  torch::Tensor forward(const torch::Tensor& x) { return b(torch::tanh(a(x))); }
};

Program wide() {
  torch::manual_seed(7);
  Wide module;
  return compile(module,
                 {.inputs = {torch::randn({4, 90})},
                  .labels = {torch::randn({4, 60})},
                  .loss = testing::mean_square,
                  .microbatches = 2});
}

std::int64_t bytes_of(const std::vector<NamedTensor>& state) {
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : state) {
    bytes += static_cast<std::int64_t>(tensor.tensor.nbytes());
  }
  return bytes;
}

TEST_CASE("BU-4: shards together update the bits of the whole, with an n-th of the state each",
          "[executor][bucket][shards]") {
  const Program program = wide();
  const StageProgram& stage = program.compiled().partition.stages[0];
  const int shards = GENERATE(2, 3, 4);
  const auto chunks = static_cast<std::int32_t>(stage.chunks.size());
  const BucketOptions options{.groups = {{.match = "a.bias", .frozen = true}},
                              .keep_gradients = true};
  StageBuckets whole(stage, AdamW{}, options);
  std::vector<StageBuckets> parts;
  for (std::int32_t shard = 0; shard < shards; ++shard) {
    parts.emplace_back(
        stage, AdamW{}, options, std::vector<BucketCut>{{{0, chunks}, shard, shards}});
  }
  torch::manual_seed(8);
  for (int step = 1; step <= 3; ++step) {
    Tensors gradients;
    for (const torch::Tensor& parameter : whole.parameters()) {
      gradients.push_back(torch::randn_like(parameter).detach());
    }
    whole.begin_step();
    whole.accumulate(gradients);
    Tensors squares;
    for (std::size_t shard = 0; shard < parts.size(); ++shard) {
      parts[shard].begin_step();
      parts[shard].accumulate(gradients);
      const torch::Tensor sums = parts[shard].flat_gradients()[0];
      const std::int64_t size = sums.numel() / shards;
      parts[shard].take_share(
          0, {sums.narrow(0, static_cast<std::int64_t>(shard) * size, size).clone()});
      squares.push_back(parts[shard].divided_squares(0));
    }
    std::map<std::int64_t, double> norms, of_parts;
    for (const SquaredNorm& norm : whole.squared_norms(2.0)) {
      norms[norm.parameter] = norm.value;
    }
    for (StageBuckets& part : parts) {
      part.take_divided_squares(0, torch::cat(squares));
      for (const SquaredNorm& norm : part.squared_norms(2.0, /*whole=*/false)) {
        CHECK(of_parts.emplace(norm.parameter, norm.value).second);
      }
    }
    CHECK(of_parts == norms);
    Tensors weights;
    whole.update(0.1, {.weight = 2.0, .clip = 0.5}, {step});
    for (StageBuckets& part : parts) {
      part.update(0, 0.1, {.weight = 2.0, .clip = 0.5}, {step});
      weights.push_back(part.own_weights(0)[0]);
    }
    for (const StageBuckets& part : parts) {
      const torch::NoGradGuard no_grad;
      part.flat_weights(0)[0].copy_(torch::cat(weights));
      for (std::size_t p = 0; p < part.parameters().size(); ++p) {
        CHECK(torch::equal(part.parameters()[p], whole.parameters()[p]));
      }
    }
  }
  std::int64_t states = 0;
  for (const StageBuckets& part : parts) {
    const std::int64_t own = bytes_of(part.state()) - (15060 + 100) * 4;
    CHECK(own <= 2 * 4 * ((15160 + shards - 1) / shards + 2 * kNormBlock));
    states += own;
  }
  CHECK(states == 2 * 15060 * 4);  // of all but the frozen one
}

/// Its first stage trains much beside the matrix that both use, and its second nothing.
struct TiedWide : torch::nn::Module {
  torch::nn::Linear a{64, 100}, b{100, 64};
  torch::Tensor matrix = register_parameter("matrix", torch::randn({64, 64}) / 8);

  TiedWide() {
    register_module("a", a);
    register_module("b", b);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor y =
        stage("first", [&] { return b(torch::tanh(a(torch::linear(x, matrix)))); });
    return stage("second", [&] { return torch::linear(y, matrix.t()); });
  }
};

TEST_CASE("BU-10: a tied parameter has the same shards in all its stages",
          "[executor][bucket][shards][ties]") {
  torch::manual_seed(7);
  TiedWide module;
  const Batch batch{torch::randn({4, 64})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  const std::vector<StageProgram>& stages = program.compiled().partition.stages;
  const auto sharing = GENERATE(Sharing::States, Sharing::Gradients, Sharing::Weights);
  constexpr std::int32_t kShards = 2;
  for (std::int32_t shard = 0; shard < kShards; ++shard) {
    const auto names_in = [&](const StageProgram& stage, const std::vector<std::string>& tied) {
      const auto chunks = static_cast<std::int32_t>(stage.chunks.size());
      const StageBuckets buckets(stage,
                                 AdamW{},
                                 {},
                                 std::vector<BucketCut>{{.chunks = {0, chunks},
                                                         .shard = shard,
                                                         .shards = kShards,
                                                         .sharing = sharing,
                                                         .tied = tied}});
      std::vector<std::string> names;
      for (const NamedTensor& tensor : buckets.state()) {
        if (tensor.name.find("matrix") != std::string::npos) {
          names.push_back(tensor.name);
        }
      }
      return names;
    };
    CAPTURE(shard, sharing);
    const std::vector<std::string> first = names_in(stages[0], {"matrix"});
    CHECK(first == names_in(stages[1], {"matrix"}));
    CHECK(first != names_in(stages[0], {}));  // lies with others, so that its shards are others
    const std::int64_t half = 64 * 64 / 2;
    const std::string own = share_name("matrix", shard * half, (shard + 1) * half);
    CHECK(std::ranges::count(first, "exp_avg:" + own) == 1);
  }
}

TEST_CASE("BU-7: ranks with parts of a parameter update what one rank with the whole does",
          "[executor][bucket][experts]") {
  const std::vector<RankSetup> setups = testing::divided_setups();
  const StageProgram& stage = *setups[0].stages[0];
  const auto experts = static_cast<std::size_t>(
      std::ranges::find(stage.parameters, "experts0", &StageParameter::name) -
      stage.parameters.begin());
  const std::size_t bucket = 1;
  StageBuckets whole(stage, AdamW{});
  std::vector<StageBuckets> parts;
  for (const RankSetup& setup : setups) {
    parts.emplace_back(stage, AdamW{}, BucketOptions(), setup.buckets_of(0));
  }
  const auto part_of = [](const torch::Tensor& of, std::size_t rank) {
    return of.narrow(0, 2 * static_cast<std::int64_t>(rank), 2);
  };
  torch::manual_seed(8);
  for (int step = 1; step <= 2; ++step) {
    Tensors gradients, squares;
    for (const torch::Tensor& parameter : whole.parameters()) {
      gradients.push_back(torch::randn_like(parameter).detach());
    }
    whole.begin_step();
    whole.accumulate(gradients);
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      Tensors own = gradients;
      own[experts] = part_of(gradients[experts], rank).contiguous();
      parts[rank].begin_step();
      parts[rank].accumulate(own);
      squares.push_back(parts[rank].divided_squares(bucket));
    }
    std::map<std::int64_t, double> norms, of_parts;
    for (const SquaredNorm& norm : whole.squared_norms(2.0)) {
      norms[norm.parameter] = norm.value;
    }
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      parts[rank].take_divided_squares(bucket, torch::cat(squares));
      for (const SquaredNorm& norm : parts[rank].squared_norms(2.0, /*whole=*/rank == 0)) {
        CHECK(of_parts.emplace(norm.parameter, norm.value).second);
      }
    }
    REQUIRE(of_parts.size() == norms.size());
    for (const auto& [parameter, value] : norms) {
      CHECK(of_parts.at(parameter) == Catch::Approx(value).epsilon(1e-12));
    }
    whole.update(0.1, {.weight = 2.0, .clip = 0.5}, {step});
    for (std::size_t rank = 0; rank < parts.size(); ++rank) {
      parts[rank].update(0.1, {.weight = 2.0, .clip = 0.5}, {step});
      CHECK(torch::equal(parts[rank].parameters()[experts],
                         part_of(whole.parameters()[experts], rank)));
    }
  }
  const std::vector<NamedTensor> state = parts[1].state();
  CHECK(std::ranges::count(state, "weight:experts0 [128, 256)", &NamedTensor::name) == 1);
  CHECK(std::ranges::count(state, "exp_avg:experts0 [128, 256)", &NamedTensor::name) == 1);

  const torch::Tensor& all = parts[0].whole_parameters()[experts];
  CHECK(all.storage().data() == nullptr);
  parts[0].hold_weights(bucket);
  parts[0].flat_weights(bucket)[0].copy_(
      torch::cat({parts[0].own_weights(bucket)[0], parts[1].own_weights(bucket)[0]}));
  CHECK(torch::equal(all, whole.parameters()[experts]));
  parts[0].release_weights(bucket);
  CHECK(all.storage().data() == nullptr);
}

TEST_CASE("BU-5: a bucket in rounds has memory for whole gradients only within a round",
          "[executor][bucket][shards]") {
  const Program program = wide();
  const StageProgram& stage = program.compiled().partition.stages[0];
  const auto chunks = static_cast<std::int32_t>(stage.chunks.size());
  std::int64_t allocated = 0;
  const BucketOptions options{.keep_gradients = true,
                              .lent_memory = [&](std::int64_t elements, at::ScalarType dtype) {
                                ++allocated;
                                return torch::zeros({elements}, dtype);
                              }};
  const auto cut = [&](Sharing sharing) {
    return std::vector<BucketCut>{
        {.chunks = {0, chunks}, .shard = 0, .shards = 2, .sharing = sharing}};
  };
  StageBuckets rounds(stage, AdamW{}, options, cut(Sharing::Gradients));
  StageBuckets once(stage, AdamW{}, options, cut(Sharing::States));
  const auto has_memory = [&] { return rounds.flat_gradients()[0].storage().data() != nullptr; };
  CHECK(!has_memory());
  CHECK(allocated == 3);  // of "once" both, here the weights
  torch::manual_seed(9);
  for (int step = 1; step <= 2; ++step) {
    rounds.begin_step();
    once.begin_step();
    torch::Tensor sum;
    for (int round = 0; round < 3; ++round) {
      Tensors gradients;
      for (const torch::Tensor& parameter : rounds.parameters()) {
        gradients.push_back(torch::randn_like(parameter).detach());
      }
      const std::int64_t before = allocated;
      rounds.accumulate(gradients);
      CHECK(allocated == before + 1);
      const torch::Tensor flat = rounds.flat_gradients()[0];
      CHECK(has_memory());
      const torch::Tensor share = flat.narrow(0, 0, flat.numel() / 2).clone();
      sum = sum.defined() ? sum + share : share.clone();
      rounds.take_share(0, {share});
      CHECK(!has_memory());
    }
    once.take_share(0, {sum});
    for (StageBuckets* buckets : {&rounds, &once}) {
      buckets->take_divided_squares(
          0, torch::cat({buckets->divided_squares(0), buckets->divided_squares(0)}));
    }
    CHECK(rounds.squared_norms(6.0).size() == once.squared_norms(6.0).size());
    for (StageBuckets* buckets : {&rounds, &once}) {
      buckets->update(0, 0.1, {.weight = 6.0}, {step});
    }
    CHECK(torch::equal(rounds.own_weights(0)[0], once.own_weights(0)[0]));
    const std::vector<NamedTensor> kept = rounds.gradients();
    const std::vector<NamedTensor> expected = once.gradients();
    REQUIRE(kept.size() == expected.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      CHECK(torch::equal(kept[i].tensor, expected[i].tensor));
    }
  }
}

TEST_CASE("BU-5: what a failed step has taken counts no more", "[executor][bucket][shards]") {
  const Program program = wide();
  const StageProgram& stage = program.compiled().partition.stages[0];
  const auto chunks = static_cast<std::int32_t>(stage.chunks.size());
  StageBuckets buckets(
      stage,
      Sgd{},
      {},
      std::vector<BucketCut>{
          {.chunks = {0, chunks}, .shard = 0, .shards = 2, .sharing = Sharing::Gradients}});
  const torch::Tensor before = buckets.own_weights(0)[0].clone();
  const std::int64_t size = before.numel();
  buckets.begin_step();
  buckets.take_share(0, {torch::full({size}, 7.0F)});
  buckets.begin_step();
  buckets.take_share(0, {torch::full({size}, 1.0F)});
  buckets.update(0, 0.5, {.weight = 1.0}, {1});
  const torch::Tensor change = before - buckets.own_weights(0)[0];
  CHECK(torch::isin(change, torch::tensor({0.0F, 0.5F})).all().item<bool>());  // 0: padding
  CHECK(change.max().item<float>() == 0.5F);
}

TEST_CASE("an optimizer gives a part of a large tensor the bits of the whole, on any threads",
          "[executor][bucket][shards]") {
  constexpr std::int64_t kSize = 100003;
  constexpr std::int64_t kEnd = 41 * kNormBlock;
  for (const OptimizerInfo& info : kOptimizers) {
    Optimizer optimizer = optimizer_named(info.name).value();
    for (const auto& [setting, value] : {std::pair("weight_decay", 0.1),
                                         std::pair("momentum", 0.5),
                                         std::pair("amsgrad", 1.0),
                                         std::pair("centered", 1.0)}) {
      (void)set_setting(optimizer, setting, value);  // of those that have it
    }
    torch::manual_seed(9);
    OptimizedParameter whole{.parameter = torch::randn({kSize}),
                             .gradient = torch::randn({kSize}),
                             .state = {},
                             .rule = {.weight_decay = 0.1},
                             .name = "p"};
    for (std::size_t s = 0; s < state_names(optimizer).size(); ++s) {
      // The first holds squares, and no mean exceeds their roots.
      whole.state.push_back(torch::rand({kSize}) * 0.1 + (s == 0 ? 1.0 : 0.0));
    }
    const auto part = [&](std::int64_t begin, std::int64_t end) {
      OptimizedParameter made = whole;
      const auto of = [&](const torch::Tensor& tensor) {
        return tensor.narrow(0, begin, end - begin).clone();
      };
      made.parameter = of(whole.parameter);
      made.gradient = of(whole.gradient);
      for (torch::Tensor& state : made.state) {
        state = of(state);
      }
      return made;
    };
    for (const int threads : {1, 2, 3}) {
      CAPTURE(info.name, threads);
      on_threads(threads, [&] {
        std::vector<OptimizedParameter> all{part(0, kSize)};
        std::vector<OptimizedParameter> parts{part(0, kEnd), part(kEnd, kSize)};
        apply(optimizer, 0.1, {2}, all, 3.0);
        apply(optimizer, 0.1, {2}, parts, 3.0);
        CHECK(torch::equal(all[0].parameter, torch::cat({parts[0].parameter, parts[1].parameter})));
      });
    }
  }
}

}  // namespace
}  // namespace stagecraft
