/// Tests sums over the copies of a stage: on several ranks, and of several copies on one.
#include "stagecraft/actors/executor/commit/copies_sum.h"

#include <cmath>
#include <mutex>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/actors/executor/commit/ranks_together.h"
#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Copies = std::vector<StageRuntime*>;

Copies copies_among(std::vector<StageRuntime>& stages) {
  Copies copies;
  for (StageRuntime& stage : stages) {
    copies.push_back(&stage);
  }
  return copies;
}

void sum_up(CopiesSum& sum, Collective& collective) {
  sum.start(collective, {}, {});
  sum.finish(testing::in_a_minute());
}

/// Returns gradients whose sum depends on the order of additions.
torch::Tensor gradients_of(int copy, const torch::Tensor& like) {
  const torch::Tensor numbers = torch::arange(like.numel(), like.options()).view_as(like);
  return torch::sin(numbers + copy) * std::pow(10.0, copy);
}

/// Makes a stage that holds the gradients of a copy.
StageRuntime stage_of(const StageProgram& program, int copy) {
  StageRuntime stage(program, Sgd{});
  const torch::Tensor& gradients = stage.buckets.flat_gradients()[0];
  gradients.copy_(gradients_of(copy, gradients));
  return stage;
}

TEST_CASE("CL-1: all copies of a stage get one sum, added in ascending order of rank",
          "[executor][commit]") {
  const testing::SmallChain chain = testing::small_chain(1);
  const StageProgram& program = chain.program.compiled().partition.stages[0];
  std::vector<torch::Tensor> found(3);
  testing::on_ranks(3, [&](Rank rank, Collective& collective) {
    StageRuntime stage = stage_of(program, rank.value);
    CopiesSum sum({.ranks = {Rank(0), Rank(1), Rank(2)}, .id = 1}, {&stage}, 0, rank == Rank(0));
    sum_up(sum, collective);
    found[rank.index()] = stage.buckets.flat_gradients()[0].clone();
  });
  torch::Tensor sum = gradients_of(0, found[0]);
  for (const int copy : {1, 2}) {
    sum = sum + gradients_of(copy, found[0]);
  }
  for (const torch::Tensor& of_rank : found) {
    CHECK(torch::equal(of_rank, sum));
  }
}

TEST_CASE("SU-1: copies on one rank are added before the others are", "[executor][commit]") {
  const testing::SmallChain chain = testing::small_chain(1);
  const StageProgram& program = chain.program.compiled().partition.stages[0];
  std::vector<torch::Tensor> found(2), of_second(2);
  testing::on_ranks(2, [&](Rank rank, Collective& collective) {
    StageRuntime first = stage_of(program, 2 * rank.value);
    StageRuntime second = stage_of(program, 2 * rank.value + 1);
    CopiesSum sum({.ranks = {Rank(0), Rank(1)}, .id = 1}, {&first, &second}, 0, rank == Rank(0));
    sum_up(sum, collective);
    found[rank.index()] = first.buckets.flat_gradients()[0].clone();
    of_second[rank.index()] = second.buckets.flat_gradients()[0].clone();
  });
  const auto of = [&](int copy) { return gradients_of(copy, found[0]); };
  CHECK(torch::equal(found[0], (of(0) + of(1)) + (of(2) + of(3))));
  CHECK(torch::equal(found[1], found[0]));
  CHECK(torch::equal(of_second[0], found[0]));
  CHECK(torch::equal(of_second[1], found[0]));
}

TEST_CASE("a rank of a group of copies holds one of its stages", "[executor][commit]") {
  CHECK_THROWS_AS(CopiesSum({.ranks = {Rank(0)}}, {}, 0, true), Error);
}

struct Normalized : torch::nn::Module {
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(4))};
  torch::Tensor scale = register_buffer("scale", torch::ones({4}));
  torch::Tensor forward(torch::Tensor x) {
    return stage("all", [&] { return norm(x) * scale; });
  }
};

TEST_CASE("all copies of a stage take the buffers that the first copy has written",
          "[executor][commit]") {
  Normalized module;
  const Batch batch{torch::randn({4, 4})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  const StageProgram& stage = program.compiled().partition.stages[0];
  // The first copy is on rank 1, and rank 0 has two others.
  std::mutex mutex;
  std::vector<std::pair<double, double>> expected_and_found;
  testing::on_ranks(2, [&](Rank rank, Collective& collective) {
    const bool first = rank == Rank(1);
    std::vector<StageRuntime> copies;
    std::vector<double> own;
    for (int copy = first ? 0 : 1; copy < (first ? 1 : 3); ++copy) {
      copies.emplace_back(stage, Sgd{});
      own.push_back(10.0 + copy);
      for (torch::Tensor& buffer : copies.back().state.buffers) {
        buffer.fill_(own.back());
      }
    }
    CopiesSum sum({.ranks = {Rank(0), Rank(1)}, .id = 1}, copies_among(copies), 0, first);
    sum_up(sum, collective);
    const std::scoped_lock lock(mutex);
    for (std::size_t c = 0; c < copies.size(); ++c) {
      for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
        expected_and_found.emplace_back(stage.buffers[b].written ? 10.0 : own[c],
                                        copies[c].state.buffers[b].flatten()[0].item<double>());
      }
    }
  });
  CHECK(expected_and_found.size() == 3 * 4);  // mean, variance, count and scale of each copy
  for (const auto& [expected, found] : expected_and_found) {
    CHECK(found == expected);
  }
}

}  // namespace
}  // namespace stagecraft
