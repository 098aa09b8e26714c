/// Tests the tasks of a step: what they read from slots and put there.
#include "stagecraft/actors/executor/run/task_runner.h"

#include <torch/torch.h>

#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::OneRank;

const char* const kInTurns = "@form list\n0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n";

/// Runs the instructions of a step up to the first that `stop` accepts. Returns its position.
template <class Stop>
std::size_t run_until(OneRank& rank, RunningStep& step, const Stop& stop) {
  TaskRunner tasks(step, rank.times(), rank.programs.trained());
  std::size_t i = 0;
  for (; i < step.plan.bound.list.size(); ++i) {
    const BoundInstruction& bound = step.plan.bound.list[i];
    if (stop(*bound.instruction)) {
      break;
    }
    switch (bound.instruction->op) {
      case Op::Recv:
        step.plan.slots.put(bound.slot, step.plan.transfers.take(i));
        break;
      case Op::Run:
        tasks.run(bound);
        break;
      case Op::Accumulate:
        tasks.accumulate(bound);
        break;
      case Op::Free:
        step.plan.slots.free(bound.slot);
        break;
      default:
        break;
    }
  }
  return i;
}

auto task(const std::string& text) {
  return [text](const Instruction& i) { return i.op == Op::Run && to_string(i.task) == text; };
}

TEST_CASE("a forward fills the slots of its outputs and of its backward, and adds its loss",
          "[executor][tasks]") {
  const testing::SmallChain chain = testing::small_chain(2);
  OneRank rank(chain.program, Schedule::parse(kInTurns));
  const StepOrder order;
  rank.feed(chain.inputs, chain.labels, order);
  RunningStep step = rank.begin(order);
  const std::size_t first = run_until(rank, step, task("0F0"));
  TaskRunner tasks(step, rank.times(), rank.programs.trained());
  const BoundInstruction& bound = step.plan.bound.list[first];
  tasks.run(bound);
  CHECK(step.plan.slots.in_flight() == 1);
  CHECK_FALSE(step.plan.slots.tensor(bound.outputs[0]).requires_grad());
  CHECK(step.plan.slots.saved(bound.saved).chunks.size() == 1);
  CHECK(step.losses.read().empty());

  RunningStep again = rank.begin(order);
  step.plan.slots.clear();
  rank.feed(chain.inputs, chain.labels, order);
  run_until(rank, again, task("1B0"));
  const std::vector<MicrobatchLoss> losses = again.losses.read();
  REQUIRE(losses.size() == 1);
  CHECK(losses[0].microbatch == Microbatch(0));
}

TEST_CASE("X-1: accumulation adds a microbatch's gradients, times its weight",
          "[executor][tasks]") {
  const testing::SmallChain chain = testing::small_chain(2);
  OneRank rank(chain.program, Schedule::parse(kInTurns));
  const auto sum_of = [&](const StepOrder& order) {
    rank.feed(chain.inputs, chain.labels, order);
    RunningStep step = rank.begin(order);
    run_until(rank, step, [](const Instruction& i) { return i.op == Op::Vote; });
    step.plan.slots.clear();
    return rank.programs.trained()[0].buckets.flat_gradients()[0].clone();
  };
  const torch::Tensor both = sum_of({.submission = Submission(1)});
  const torch::Tensor doubled =
      sum_of({.submission = Submission(2), .parts = {{.count = 2, .weight = 2.0}}});
  CHECK(torch::equal(doubled, 2.0 * both));
  const torch::Tensor unequal =
      sum_of({.submission = Submission(3), .parts = {{.count = 1}, {.count = 1, .weight = 4.0}}});
  const torch::Tensor second =
      sum_of({.submission = Submission(4), .parts = {{.count = 1}, {.count = 1, .weight = 1e-30}}});
  CHECK(torch::allclose(unequal, second + 4.0 * (both - second), 1e-5, 1e-6));
}

/// Drops half of the values.
struct Random : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(8, 8))};
  torch::Tensor forward(torch::Tensor x) {
    return stage("all", [&] { return torch::dropout(layer(x), 0.5, true); });
  }
};

TEST_CASE("AC-2: random operators count the microbatches of an update through all its batches",
          "[executor][tasks]") {
  torch::manual_seed(5);
  Random module;
  const Batch batch{torch::randn({2, 64, 8})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  const Schedule schedule = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n");
  OneRank rank(program, schedule);
  const auto forwards = std::make_shared<const Plan>(
      lower_schedule(program, schedule, Layout::of(schedule), /*training=*/false));
  rank.programs.add(testing::forwards_only(program, forwards, rank.setup.train));
  std::int64_t submission = 0;
  const auto losses = [&](StepOrder order) {
    order.submission = Submission(submission++);
    order.updates = false;
    return rank.run(order, batch, batch);
  };
  const auto first = losses({});
  const auto second = losses({.accumulated = 1});
  CHECK((losses({}) == first));
  CHECK((losses({.accumulated = 1}) == second));
  CHECK_FALSE((first == second));
  CHECK_FALSE((losses({.seed = 1}) == first));
  const auto alone = losses({.program = testing::kForwardsOnly});
  CHECK((losses({.program = testing::kForwardsOnly, .accumulated = 1}) == alone));
}

TEST_CASE("a replay counts what it keeps from the first half of its backward on",
          "[executor][tasks]") {
  torch::manual_seed(4);
  testing::Chain module(2);
  const Batch batch{torch::randn({4, 8})};
  const Program program = compile(module,
                                  {.inputs = batch,
                                   .labels = batch,
                                   .loss = testing::mean_square,
                                   .microbatches = 2,
                                   .recompute = Recompute::stages()});
  OneRank rank(program,
               Schedule::parse("@form list\n"
                               "0F0 1F0 1I0 0I0 1W0 0W0 0F1 1F1 1I1 0I1 1W1 0W1\n"));
  const StageProgram& stage = program.compiled().partition.stages[1];
  REQUIRE(stage.recomputes());
  const StepOrder order;
  rank.feed(batch, batch, order);
  RunningStep step = rank.begin(order);
  const std::size_t half = run_until(rank, step, task("1I0"));
  const std::int64_t before = step.plan.slots.bytes();
  const BoundInstruction& bound = step.plan.bound.list[half];
  TaskRunner(step, rank.times(), rank.programs.trained()).run(bound);
  const torch::Tensor& sent = step.plan.slots.tensor(bound.input_gradients[0]);
  CHECK(stage.replayed_bytes() > 0);
  CHECK(step.plan.slots.bytes() ==
        before + stage.replayed_bytes() + static_cast<std::int64_t>(sent.nbytes()));
}

TEST_CASE("P-8: surplus work reads and writes nothing", "[executor][tasks]") {
  using Kind = testing::MixedChain::Kind;
  torch::manual_seed(6);
  testing::MixedChain module({Kind::Frozen, Kind::Trained});
  const Batch batch{torch::randn({4, 8})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  OneRank rank(program, Schedule::parse(kInTurns));
  const StepOrder order;
  rank.feed(batch, batch, order);
  RunningStep step = rank.begin(order);
  const std::size_t surplus = run_until(rank, step, task("0B0"));
  REQUIRE(step.plan.bound.list[surplus].instruction->does_nothing());
  const std::int64_t before = step.plan.slots.bytes();
  TaskRunner(step, rank.times(), rank.programs.trained()).run(step.plan.bound.list[surplus]);
  CHECK(step.plan.slots.bytes() == before);
}

}  // namespace
}  // namespace stagecraft
