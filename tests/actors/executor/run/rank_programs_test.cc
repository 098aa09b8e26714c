/// Tests what a rank knows: the program that trains, evaluations, and further shapes that must fit.
#include "stagecraft/actors/executor/run/rank_programs.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/executor/setup/verify_setup.h"
#include "stagecraft/compiler/program/evaluation_chunks.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/compiler/shapes/in_chunks.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/actors/executor/setup/own_parts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::kForwardsOnly;
using testing::OneRank;

struct KnowingRank {
  testing::SmallChain chain = testing::small_chain(2);
  Schedule schedule = Schedule::parse("@form list\n0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n");
  OneRank rank{chain.program, schedule};

  [[nodiscard]] RankShape evaluation() const {
    const auto forwards = std::make_shared<const Plan>(
        lower_schedule(chain.program, schedule, Layout::of(schedule), /*training=*/false));
    return testing::forwards_only(chain.program, forwards, rank.setup.train);
  }

  /// Returns the stages for a batch of another number of rows.
  [[nodiscard]] RankShape shape(std::int64_t rows) const {
    torch::manual_seed(4);
    testing::Chain module(2);
    const Program program = compile(module,
                                    {.inputs = chain.inputs,
                                     .labels = chain.labels,
                                     .loss = testing::mean_square,
                                     .microbatches = testing::kOneRankMicrobatches});
    const Batch batch{torch::zeros({rows, 8})};
    const Parts parts = parts_of(program, batch, batch);
    const std::shared_ptr<const OtherShape>& shape = parts.shapes.at(0);
    return rank_shape({.number = shape->number,
                       .random = shape->random,
                       .stages = {shape, &shape->stages},
                       .plan = nullptr},
                      rank.setup.train);
  }

  [[nodiscard]] std::string refused(RankShape given) {
    return refusal([&] { rank.programs.add(std::move(given)); }, Errc::PlanInvalid);
  }
};

TEST_CASE("a rank begins with the program that trains, and learns others", "[executor][programs]") {
  KnowingRank f;
  RankPrograms& programs = f.rank.programs;
  CHECK(programs.knows(kTraining, 0));
  CHECK_FALSE(programs.knows(kTraining, 1));
  CHECK_FALSE(programs.knows(kForwardsOnly, 0));
  CHECK(programs.trained().size() == 2);
  const StageRuntime* const trained = programs.trained().data();

  programs.add(f.shape(8));
  CHECK(programs.knows(kTraining, 1));
  programs.add(f.evaluation());
  CHECK(programs.knows(kForwardsOnly, 0));
  CHECK_FALSE(programs.knows(kForwardsOnly, 1));
  CHECK(programs.trained().data() == trained);  // LD-1
}

TEST_CASE("all shapes and evaluations of a stage have the weights of the one that trains",
          "[executor][programs]") {
  KnowingRank f;
  f.rank.programs.add(f.shape(8));
  f.rank.programs.add(f.evaluation());
  const torch::Tensor& weight = f.rank.programs.trained()[1].state.parameters[0];
  CHECK(f.rank.programs.at(kTraining).shapes.at(1).stages[1].state.parameters[0].is_same(weight));
  CHECK(f.rank.programs.at(kForwardsOnly).stages()[1].state.parameters[0].is_same(weight));
}

TEST_CASE("what is given again replaces what has its numbers", "[executor][programs]") {
  KnowingRank f;
  f.rank.programs.add(f.evaluation());
  RankShape again = f.evaluation();
  again.random = 77;
  f.rank.programs.add(std::move(again));
  CHECK(f.rank.programs.at(kForwardsOnly).shapes.size() == 1);
  CHECK(f.rank.programs.at(kForwardsOnly).shapes.at(0).received.random == 77);
}

TEST_CASE("stages that do not fit the rank are refused, and change nothing",
          "[executor][programs]") {
  KnowingRank f;
  RankShape given = f.shape(8);
  given.rank = Rank(1);
  CHECK_THAT(f.refused(given), ContainsSubstring("stages of another rank"));
  given = f.shape(8);
  given.stages.pop_back();
  CHECK_THAT(f.refused(given), ContainsSubstring("stages of another rank"));
  given = f.shape(8);
  given.number = -1;
  (void)f.refused(given);
  given = f.shape(8);
  given.program = kForwardsOnly;
  CHECK_THAT(f.refused(given), ContainsSubstring("belongs to no program"));
  given = f.evaluation();
  given.program = kTraining;
  (void)f.refused(given);
  given = f.shape(8);
  testing::own_program(given.stages).parameters.pop_back();
  CHECK_THAT(f.refused(given), ContainsSubstring("stage 0 does not use the parameter"));
  given = f.evaluation();
  given.share.rank.rank = Rank(3);
  CHECK_THAT(f.refused(given), ContainsSubstring("belongs to rank 3"));
  CHECK_FALSE(f.rank.programs.knows(kTraining, 1));
  CHECK_FALSE(f.rank.programs.knows(kForwardsOnly, 0));
}

struct HalvedLayers : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(8, 8))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(8, 8))};
  torch::Tensor forward(const torch::Tensor& x) { return b(torch::tanh(a(x))); }
};

/// A rank with a half of the weights of each layer (shard_params), and an evaluation that gathers
/// the others', layer by layer.
struct HalfRank {
  HalvedLayers module;
  torch::Tensor x = torch::randn({4, 8});
  Schedule schedule = in_copies(gpipe(1, 1), 2);
  Layout layout = Layout::of(schedule);
  Strategy strategy =
      strategy_of(schedule, layout, {.bucket_bytes = 300, .shard_parameters = true});
  Program program = in_chunks(
      compile(module,
              {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2}),
      strategy,
      layout);
  std::shared_ptr<const Plan> plan =
      std::make_shared<const Plan>(lower(program, strategy, layout, /*training=*/true).plan);
  RankSetup setup = rank_setup({.plan_id = {},
                                .program = program.shared(),
                                .train = plan,
                                .optimizer = Sgd{},
                                .options = {}},
                               Rank(0));
  InprocNetwork network{2};
  RankPrograms programs{
      setup, kProgramDevice, network.endpoint(Rank(0)), std::make_shared<WaitBoard>()};

  /// `gathers`: as the plan's groups say.
  [[nodiscard]] RankShape evaluation(bool gathers = true) {
    const Program forwards =
        evaluation_in_chunks(program.evaluations()->prediction({x}), program, plan->tables);
    const auto lowered = std::make_shared<const Plan>(
        lower(forwards, strategy, layout, /*training=*/false, gathers ? plan.get() : nullptr).plan);
    return rank_shape({.program = kForwardsOnly,
                       .number = 0,
                       .random = 0,
                       .stages = {forwards.shared(), &forwards.compiled().partition.stages},
                       .plan = lowered},
                      setup.train);
  }
};

TEST_CASE("an evaluation that uses weights which its list does not gather is refused (VS-1)",
          "[executor][programs][shards]") {
  HalfRank f;
  REQUIRE(verify(f.setup).empty());
  REQUIRE(f.setup.stages.front()->chunks.size() == 2);
  const auto refused = [&](RankShape given) {
    const std::string why = refusal([&] { f.programs.add(std::move(given)); }, Errc::PlanInvalid);
    CHECK_FALSE(f.programs.knows(kForwardsOnly, 0));
    return why;
  };
  CHECK_THAT(refused(f.evaluation(/*gathers=*/false)),
             ContainsSubstring("stage 0 uses weights that the ranks split, in chunks for which its "
                               "list does not gather them"));
  RankShape given = f.evaluation();
  testing::own_tables(given.share).buckets[1].chunks.count = 0;
  CHECK_THAT(refused(given), ContainsSubstring("stage 0 uses weights"));
  given = f.evaluation();
  testing::own_tables(given.share).groups.pop_back();
  CHECK_THAT(refused(given), ContainsSubstring("other groups or buckets than training"));
  given = f.evaluation();
  testing::own_tables(given.share).groups.clear();
  CHECK_THAT(refused(given), ContainsSubstring("other groups or buckets than training"));
  given = f.evaluation();
  testing::own_tables(given.share).buckets.pop_back();
  CHECK_THAT(refused(given), ContainsSubstring("other groups or buckets than training"));
  f.programs.add(f.evaluation());
  CHECK(f.programs.knows(kForwardsOnly, 0));
  // Another shape runs by the same list.
  given = f.evaluation();
  given.number = 1;
  std::vector<Chunk>& chunks = testing::own_program(given.stages).chunks;
  chunks[1].nodes.insert(chunks[1].nodes.begin(), chunks[0].nodes.begin(), chunks[0].nodes.end());
  chunks[0].nodes.clear();
  CHECK_THAT(refusal([&] { f.programs.add(std::move(given)); }, Errc::PlanInvalid),
             ContainsSubstring("stage 0 uses weights"));
  CHECK_FALSE(f.programs.knows(kForwardsOnly, 1));
}

TEST_CASE("a rank with a list that breaks its rules knows nothing", "[executor][programs]") {
  const KnowingRank f;
  RankSetup setup = f.rank.setup;
  std::vector<Instruction>& list = testing::own_list(setup.train).instructions;
  list.erase(list.begin());  // a receive
  CHECK_THAT(refusal(
                 [&] {
                   const RankPrograms programs(
                       setup, kProgramDevice, f.rank.transport, std::make_shared<WaitBoard>());
                 },
                 Errc::PlanInvalid),
             ContainsSubstring("breaks its rules"));
}

}  // namespace
}  // namespace stagecraft
