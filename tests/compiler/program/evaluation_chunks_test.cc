/// Tests evaluations whose ranks hold parts of weights: where their stages are cut, and the gathers
/// of their plans.
#include "stagecraft/compiler/program/evaluation_chunks.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/chunk_borders.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/evaluations.h"
#include "stagecraft/compiler/shapes/in_chunks.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"
#include "stagecraft/tests/compiler/plan/small_plans.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;
using testing::mentions;

constexpr std::int64_t kLayer = 190;  // bytes: a layer, and not the bias of the one before it

/// Trains a, b and c in this order. A test says how it evaluates.
struct ThreeLayers : torch::nn::Module {
  using Forward = std::function<torch::Tensor(ThreeLayers&, const torch::Tensor&)>;

  explicit ThreeLayers(Forward evaluation) : evaluates(std::move(evaluation)) {}
  torch::Tensor trains(const torch::Tensor& x) { return c(torch::tanh(b(torch::tanh(a(x))))); }
  torch::Tensor forward(const torch::Tensor& x) {
    return is_training() ? trains(x) : evaluates(*this, x);
  }

  torch::nn::Linear a{register_module("a", torch::nn::Linear(6, 6))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(6, 6))};
  torch::nn::Linear c{register_module("c", torch::nn::Linear(6, 6))};
  Forward evaluates;
};

/// A module that two copies train, which hold parts of its weights, and its evaluation.
struct SplitEvaluation {
  torch::Tensor x;
  Schedule schedule;
  Layout layout = Layout::of(schedule);
  Strategy strategy;
  Program trained;
  Plan plan;
  Program evaluation;

  template <class Module>
  SplitEvaluation(Module& module,
                  std::int64_t width,
                  const ReplicateOptions& options,
                  const std::vector<DividedRegion>& divided = {},
                  int microbatches = 2)
      : x(torch::randn({4 * microbatches, width})),
        schedule(in_copies(gpipe(1, microbatches), 2)),
        strategy(strategy_of(schedule, layout, options, divided)),
        trained(in_chunks(compile(module,
                                  {.inputs = {x},
                                   .labels = {x},
                                   .loss = mean_square,
                                   .microbatches = 2 * microbatches}),
                          strategy,
                          layout)),
        plan(lower(trained, strategy, layout, /*training=*/true).plan),
        evaluation(
            evaluation_in_chunks(trained.evaluations()->prediction({x}), trained, plan.tables)) {}

  explicit SplitEvaluation(ThreeLayers& module, std::optional<std::int64_t> bucket_bytes = kLayer)
      : SplitEvaluation(module, 6, {.bucket_bytes = bucket_bytes, .shard_parameters = true}) {}

  [[nodiscard]] const StageProgram& stage() const {
    return evaluation.compiled().partition.stages[0];
  }
  /// Returns the plan of the evaluation, which lower() proves.
  [[nodiscard]] Plan forwards() const {
    return lower(evaluation, strategy, layout, /*training=*/false, &plan).plan;
  }
  /// Returns the chunks of the evaluation that use each bucket of the training.
  [[nodiscard]] std::vector<ChunkRange> users() const {
    std::vector<ChunkRange> all;
    for (const PlanBucket& bucket : plan.tables.buckets) {
      all.push_back(users_of(stage(), trained.compiled().partition.stages[0], bucket.chunks));
    }
    return all;
  }
};

/// Returns how often rank 0 gathers the weights of a group, and gives them back as often.
std::ptrdiff_t gathers_of(const Plan& plan, int group) {
  const std::vector<Instruction>& list = plan.list_of(Rank(0)).instructions;
  const auto times = [&](Op op) {
    return std::ranges::count_if(
        list, [&](const Instruction& i) { return i.op == op && i.group == group; });
  };
  CHECK(times(Op::Start) == times(Op::Finish));
  CHECK(times(Op::Start) == times(Op::Release));
  return times(Op::Start);
}

/// Returns the most groups whose weights rank 0 gathers or has at a time.
std::size_t most_gathered(const Plan& plan) {
  std::size_t now = 0, most = 0;
  for (const Instruction& i : plan.list_of(Rank(0)).instructions) {
    now += i.op == Op::Start && gathers_weights(plan.tables, i) ? 1 : 0;
    now -= i.op == Op::Release ? 1 : 0;
    most = std::max(most, now);
  }
  CHECK(now == 0);
  return most;
}

TEST_CASE("an evaluation gathers the weights of one bucket after the other (P-12)",
          "[compiler][evaluation][shards]") {
  ThreeLayers module([](ThreeLayers& m, const torch::Tensor& x) { return m.trains(x); });
  const SplitEvaluation split(module);
  CHECK(split.stage().chunks.size() == 3);
  CHECK((split.users() == std::vector<ChunkRange>{{0, 1}, {1, 1}, {2, 1}}));
  const Plan plan = split.forwards();
  CHECK((plan.tables.groups == split.plan.tables.groups));
  for (int group = 0; group < 3; ++group) {
    CHECK(gathers_of(plan, group) == 2);  // once for each microbatch of a rank
  }
  CHECK(most_gathered(plan) == 2);
  CHECK(most_gathered(plan) <= most_gathered(split.plan));
  CHECK_THAT(to_string(plan),
             ContainsSubstring("group 1: chunk 1 of stage 0, in shards, in rounds, weights too, "
                               "on ranks 0, 1") &&
                 ContainsSubstring("gather  i") &&
                 ContainsSubstring(" start all-gather of group 2 round 1") &&
                 ContainsSubstring(" release weights of group 2"));
}

TEST_CASE("forwards that follow each other with one bucket are one round of an evaluation",
          "[compiler][evaluation][shards]") {
  ThreeLayers module([](ThreeLayers& m, const torch::Tensor& x) { return m.trains(x); });
  const SplitEvaluation split(module, std::nullopt);
  CHECK(split.stage().chunks.size() == 1);
  CHECK(gathers_of(split.forwards(), 0) == 1);
}

TEST_CASE("an evaluation may use the weights of buckets in another order, or not at all",
          "[compiler][evaluation][shards]") {
  ThreeLayers swapping([](ThreeLayers& m, const torch::Tensor& x) { return m.a(m.c(x)); });
  const SplitEvaluation split(swapping);
  CHECK((split.users() == std::vector<ChunkRange>{{1, 1}, {0, 0}, {0, 1}}));
  const Plan plan = split.forwards();
  CHECK(gathers_of(plan, 0) == 2);
  CHECK(gathers_of(plan, 1) == 0);
  CHECK(gathers_of(plan, 2) == 2);
  CHECK(to_string(plan.tables, plan.tables.groups[1]) == "weights of stage 0, not gathered");
}

TEST_CASE("chunks of an evaluation may share a bucket, and use several",
          "[compiler][evaluation][shards]") {
  ThreeLayers again([](ThreeLayers& m, const torch::Tensor& x) {
    return m.c(torch::tanh(m.a(torch::tanh(m.b(torch::tanh(m.a(x)))))));
  });
  const SplitEvaluation split(again);
  CHECK((split.users() == std::vector<ChunkRange>{{0, 2}, {1, 1}, {2, 1}}));
  const Plan plan = split.forwards();
  CHECK(gathers_of(plan, 0) == 2);
  CHECK(gathers_of(plan, 1) == 2);
  CHECK(most_gathered(plan) <= 3);  // a and b for one chunk, and c for the next

  // Two values of memory that is written cross before b, so no border can be there.
  ThreeLayers writing([](ThreeLayers& m, const torch::Tensor& x) {
    const torch::Tensor h = m.a(x);
    const torch::Tensor flat = h.view({-1});
    const torch::Tensor y = m.b(h);
    flat.add_(1);
    return m.c(y + h);
  });
  const SplitEvaluation joined(writing);
  CHECK(joined.stage().chunks.size() == 2);
  CHECK((joined.users() == std::vector<ChunkRange>{{0, 1}, {0, 1}, {1, 1}}));
  CHECK(gathers_of(joined.forwards(), 1) == 2);
}

TEST_CASE("an evaluation gathers divided experts for their chunk, without exchanges",
          "[compiler][evaluation][experts]") {
  testing::ExpertChain module(1);
  const SplitEvaluation split(
      module, testing::ExpertChain::kWidth, {}, {{.stage = StageId(0), .tag = "EP", .parts = 0}});
  const auto divided =
      std::ranges::find(split.plan.tables.groups, PlanGroup::Kind::Divided, &PlanGroup::kind);
  REQUIRE(divided != split.plan.tables.groups.end());
  const Plan plan = split.forwards();
  const auto group = static_cast<int>(divided - split.plan.tables.groups.begin());
  CHECK(gathers_of(plan, group) == 1);  // nothing else is gathered between its two forwards
  CHECK(std::ranges::none_of(plan.list_of(Rank(0)).instructions, is_exchange));
  CHECK_THAT(to_string(plan),
             ContainsSubstring(std::to_string(group) + ": ") && ContainsSubstring(", divided, on"));
}

TEST_CASE("an evaluation whose copies hold whole weights has no groups, and its stages one chunk",
          "[compiler][evaluation]") {
  ThreeLayers module([](ThreeLayers& m, const torch::Tensor& x) { return m.trains(x); });
  const SplitEvaluation split(module, 6, {.bucket_bytes = kLayer, .shard_gradients = true});
  CHECK(split.trained.compiled().partition.stages[0].chunks.size() == 3);
  CHECK(split.stage().chunks.size() == 1);
  CHECK(split.forwards().tables.groups.empty());
  CHECK(split.forwards().tables.buckets.empty());
}

TEST_CASE("the rules of gathers hold for evaluations (P-7, P-9, P-12)",
          "[compiler][evaluation][shards]") {
  ThreeLayers module([](ThreeLayers& m, const torch::Tensor& x) { return m.trains(x); });
  const SplitEvaluation split(module);
  const Plan sound = split.forwards();
  const auto faults_of = [&](auto&& spoil) {
    Plan plan = sound;
    spoil(testing::list_of(plan, 0).instructions);
    return verify(plan);
  };
  const auto of = [](std::vector<Instruction>& list, Op op) {
    return std::ranges::find(list, op, &Instruction::op);
  };
  CHECK(mentions(faults_of([&](auto& list) { of(list, Op::Finish)->round = 1; }), "P-7"));
  CHECK(mentions(faults_of([&](auto& list) {
                   std::ranges::find(list, 1, &Instruction::round)->waits.clear();
                 }),
                 "P-12"));
  CHECK(mentions(faults_of([&](auto& list) { of(list, Op::Run)->waits.clear(); }), "P-12"));
  CHECK(mentions(faults_of([&](auto& list) {
                   of(list, Op::Start)->collective = CollectiveKind::ReduceScatter;
                 }),
                 "its group does other things"));
  CHECK(mentions(faults_of([&](auto& list) { of(list, Op::Release)->op = Op::Vote; }),
                 "it trains, in a plan of forwards"));
}

TEST_CASE("another shape of an evaluation is cut as the first, or refused",
          "[compiler][evaluation][shards][bad-input]") {
  ThreeLayers module([](ThreeLayers& m, const torch::Tensor& x) {
    return x.size(0) == 3 ? m.a(m.b(m.c(x))) : m.trains(x);
  });
  const SplitEvaluation split(module);
  REQUIRE(split.stage().chunks.size() == 3);
  const ChunkBorders& borders = split.evaluation.compiled().chunk_borders.at(0);
  const auto stage_for = [&](std::int64_t rows) {
    const Program first = split.trained.evaluations()->prediction({split.x});
    return parts_of(first, {torch::randn({4 * rows, 6})}, {}).shapes.at(0)->stages.at(0);
  };
  StageProgram alike = stage_for(5);
  cut_as_first(alike, borders);
  CHECK(alike.chunks.size() == 3);
  StageProgram turned = stage_for(3);
  CHECK_THAT(refusal([&] { cut_as_first(turned, borders); }, Errc::CompilePartition),
             ContainsSubstring("in an evaluation of these sizes stage \"" + turned.name +
                               "\" uses its weights in another order than in its first batch"));
}

TEST_CASE("borders between sets of parameters are where each is first read", "[compiler][chunks]") {
  ThreeLayers module([](ThreeLayers& m, const torch::Tensor& x) { return m.trains(x); });
  const torch::Tensor x = torch::randn({4, 6});
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = 2});
  StageProgram stage = program.compiled().partition.stages[0];
  CHECK(borders_between(stage, {}).empty());
  CHECK(borders_between(stage, {{"b.weight", "b.bias"}}).empty());  // the first set of all
  CHECK(borders_between(stage, {{"a.weight"}, {"spare"}}).empty());
  const ChunkBorders borders = borders_between(
      stage, {{"c.weight", "c.bias"}, {"a.weight", "a.bias"}, {"b.weight", "b.bias"}});
  CHECK(borders.parameters.size() == 2);
  cut_at(stage, borders);
  CHECK(stage.chunks.size() == 3);
  CHECK(borders_between(stage, {{"a.weight"}, {"b.weight"}}).empty());  // it has its borders
}

}  // namespace
}  // namespace stagecraft
