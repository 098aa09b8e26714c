/// Tests the sum of a tied parameter's gradient: the order of its parts, wherever the stages are.
#include "stagecraft/actors/executor/commit/tie_sum.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/ties.h"
#include "stagecraft/tests/actors/executor/commit/ranks_together.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

constexpr int kTiedStages = 4;

/// Returns gradients whose sum depends on the order of additions.
torch::Tensor part_of_stage(StageId stage, const torch::Tensor& like) {
  const torch::Tensor numbers = torch::arange(like.numel(), like.options()).view_as(like);
  return torch::sin(numbers + stage.value) * std::pow(10.0, 3 - stage.value);
}

TEST_CASE("TY-1: parts are added in the order of the tie's stages, on any ranks",
          "[executor][commit]") {
  torch::manual_seed(3);
  testing::TiedChain module(kTiedStages);
  const Batch batch{torch::randn({4, 8})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  const std::vector<StageProgram>& stages = program.compiled().partition.stages;
  const auto ties = ties_of(program.compiled());
  REQUIRE(ties.size() > 0);
  using Ranks = std::vector<int>;  // by stage
  const auto ranks =
      GENERATE(Ranks{0, 0, 0, 0}, Ranks{0, 1, 2, 3}, Ranks{1, 0, 1, 0}, Ranks{2, 0, 1, 1});
  CAPTURE(ranks);
  for (const Tie& tie : ties) {
    std::vector<Rank> of_tie;
    for (const StageId stage : tie.stages) {
      of_tie.emplace_back(ranks[stage.index()]);
    }
    Group members{.ranks = of_tie, .id = 1};
    std::ranges::sort(members.ranks);
    members.ranks.erase(std::ranges::unique(members.ranks).begin(), members.ranks.end());
    std::vector<torch::Tensor> found(kTiedStages);  // by stage
    testing::on_ranks(kTiedStages, [&](Rank rank, Collective& collective) {
      std::deque<StageRuntime> mine;
      TieParts parts{.ranks = of_tie, .parameters = tie.parameters, .mine = {}};
      for (const StageId stage : tie.stages) {
        parts.mine.push_back(nullptr);
        if (ranks[stage.index()] == rank.value) {
          mine.emplace_back(stages[stage.index()], Sgd{});
          const torch::Tensor gradient = mine.back().buckets.gradient(tie.parameters[0]);
          gradient.copy_(part_of_stage(stage, gradient));
          parts.mine.back() = &mine.back();
        }
      }
      if (mine.empty()) {
        return;
      }
      TieSum sum(members, parts);
      sum.start(collective, {}, {});
      sum.finish(testing::in_a_minute());
      for (const StageRuntime& stage : mine) {
        found[stage.program->id.index()] = stage.buckets.gradient(tie.parameters[0]).clone();
      }
    });
    const torch::Tensor& like = found[tie.stages[0].index()];
    torch::Tensor sum = part_of_stage(tie.stages[0], like);
    for (std::size_t s = 1; s < tie.stages.size(); ++s) {
      sum = sum + part_of_stage(tie.stages[s], like);
    }
    for (const StageId stage : tie.stages) {
      CHECK(torch::equal(found[stage.index()], sum));
    }
  }
}

TEST_CASE("TY-2: stages with shards add up the same shard of each parameter",
          "[executor][commit][shards]") {
  constexpr std::int32_t kShards = 2;
  constexpr int kWidth = 64;  // the tied matrix has 4 blocks, two for each shard
  torch::manual_seed(4);
  testing::TiedChain module(2, /*bare_first=*/false, kWidth);
  const Batch batch{torch::randn({4, kWidth})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  const std::vector<StageProgram>& stages = program.compiled().partition.stages;
  const auto ties = ties_of(program.compiled());
  REQUIRE(ties.size() == 1);
  const std::string& matrix = ties[0].parameters[0];
  REQUIRE(matrix == "matrix");
  // Rank r has stage r % 2 and its shard r / 2.
  std::vector<torch::Tensor> found(2 * kShards);
  testing::on_ranks(2 * kShards, [&](Rank rank, Collective& collective) {
    const StageProgram& stage = stages[rank.index() % 2];
    const std::int32_t shard = rank.value / 2;
    const auto chunks = static_cast<std::int32_t>(stage.chunks.size());
    StageRuntime mine(stage,
                      Sgd{},
                      BucketOptions(),
                      std::vector<BucketCut>{{.chunks = {0, chunks},
                                              .shard = shard,
                                              .shards = kShards,
                                              .sharing = Sharing::States,
                                              .tied = ties[0].parameters}});
    std::vector<torch::Tensor> sums;
    for (const torch::Tensor& flat : mine.buckets.flat_gradients()) {
      const torch::Tensor whole = part_of_stage(stage.id, flat);
      sums.push_back(whole.chunk(kShards)[static_cast<std::size_t>(shard)].clone());
    }
    mine.buckets.take_share(0, sums);
    TieParts parts{.ranks = {Rank(2 * shard), Rank(2 * shard + 1)},
                   .parameters = ties[0].parameters,
                   .mine = {nullptr, nullptr}};
    parts.mine[rank.index() % 2] = &mine;
    TieSum sum({.ranks = parts.ranks, .id = 1 + shard}, parts);
    sum.start(collective, {}, {});
    sum.finish(testing::in_a_minute());
    for (const NamedTensor& gradient : mine.buckets.gradients()) {
      if (gradient.name.starts_with(matrix)) {
        found[rank.index()] = gradient.tensor.clone();
      }
    }
  });
  const torch::Tensor like = torch::empty({kWidth * kWidth});
  const auto expected =
      (part_of_stage(StageId(0), like) + part_of_stage(StageId(1), like)).chunk(kShards);
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    CAPTURE(rank);
    CHECK(torch::equal(found[rank], expected[rank / 2]));
  }
}

}  // namespace
}  // namespace stagecraft
