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

}  // namespace
}  // namespace stagecraft
