/// Tests binding a rank's list: a list from any source is checked before it runs, and a step looks
/// nothing up.
#include "stagecraft/actors/executor/setup/bound_plan.h"

#include <algorithm>
#include <limits>

#include <torch/torch.h>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/actors/executor/setup/own_parts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::own_list;
using testing::own_program;

RankSetup setup_of(Rank rank) {
  torch::manual_seed(4);
  testing::Chain module(2);
  const auto x = torch::randn({4, 8});
  const Program program = compile(
      module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2});
  const Schedule schedule = zb_h1(2, 2);
  const Layout layout = Layout::of(schedule);
  return rank_setup({.plan_id = {},
                     .program = program.shared(),
                     .train = std::make_shared<const Plan>(
                         lower_schedule(program, schedule, layout, /*training=*/true)),
                     .optimizer = Sgd{},
                     .options = {}},
                    rank);
}

/// Returns the executor's refusal of the setup.
std::string setup_refusal(RankSetup setup) {
  const InprocNetwork network(2);
  try {
    const StageExecutor executor(std::move(setup), network.endpoint(Rank(0)));
  } catch (const Error& error) {
    CHECK(error.code() == Errc::PlanInvalid);
    return error.message();
  }
  return "none";
}

Instruction& first(RankSetup& setup, Op op) {
  return *std::ranges::find(own_list(setup.train).instructions, op, &Instruction::op);
}

TEST_CASE("a bound list knows slots, stages and what other streams wait for", "[executor][bind]") {
  const RankSetup setup = setup_of(Rank(0));
  const BoundPlan bound = bind_plan(setup.train, setup.stages);
  REQUIRE(bound.list.size() == setup.train.list->instructions.size());
  CHECK(bound.receives.size() == 4);  // two inputs, two gradients
  for (std::size_t i = 0; i < bound.list.size(); ++i) {
    const BoundInstruction& b = bound.list[i];
    CHECK(b.instruction == &setup.train.list->instructions[i]);
    for (const std::size_t wait : b.waits) {
      CHECK(wait < i);
      CHECK(bound.list[wait].is_waited_for);
      CHECK(bound.list[wait].instruction->stream != b.instruction->stream);
      CHECK((bound.list[wait].instruction->op != Op::Free && b.instruction->op != Op::Free));
    }
    if (b.instruction->op != Op::Run || b.instruction->does_nothing()) {
      continue;
    }
    if (b.instruction->task.kind == CellKind::Forward) {
      CHECK(b.inputs.size() == 1);
      CHECK(b.outputs.size() == 1);
      CHECK(b.saved.value >= 0);
      CHECK(b.keeps_graphs);
    } else {
      CHECK(b.saved.value >= 0);
      CHECK((b.parameter_gradients.value >= 0) ==
            (b.instruction->task.kind == CellKind::BackwardWeight));
      CHECK(b.is_accumulated_next == (b.parameter_gradients.value >= 0));
    }
  }
}

TEST_CASE("gradients that others of the stage are accumulated before are not accumulated next",
          "[executor][bind]") {
  RankSetup setup = setup_of(Rank(0));
  RankList& own = own_list(setup.train);
  std::vector<Instruction>& list = own.instructions;
  const std::int32_t own_slots = own.slots;  // and one for the gradients of each microbatch
  own.slots += 2;
  for (Instruction& i : list) {
    for (std::vector<SlotUse>* uses : {&i.reads, &i.writes}) {
      for (SlotUse& use : *uses) {
        if (use.value.role == Role::ParameterGradient) {
          use.slot = SlotId(own_slots + use.value.microbatch.value);
        }
      }
    }
  }
  // Both are accumulated after the last backward.
  const auto vote = std::ranges::find(list, Op::Vote, &Instruction::op);
  std::stable_partition(list.begin(), vote, [](const Instruction& i) {
    return i.op == Op::Run || i.reads.empty() ||
           i.reads.front().value.role != Role::ParameterGradient;
  });
  const BoundPlan bound = bind_plan(setup.train, setup.stages);
  std::vector<bool> next;
  for (const BoundInstruction& b : bound.list) {
    if (b.parameter_gradients.value >= 0) {
      next.push_back(b.is_accumulated_next);
    }
  }
  CHECK(next == std::vector<bool>{false, false});
}

TEST_CASE("BP-1: a list that breaks a rule is refused when it is loaded", "[executor][bind]") {
  const RankSetup sound = setup_of(Rank(0));
  CHECK(setup_refusal(sound) == "none");
  RankSetup spoiled = sound;
  first(spoiled, Op::Free).reads.clear();
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("P-9: rank 0"));
  spoiled = sound;
  first(spoiled, Op::Send).reads[0].slot = SlotId(1000);
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("the list has no slot 1000"));
  spoiled = sound;
  first(spoiled, Op::Send).waits = {InstructionId(4711)};
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("waits for i4711, which is not earlier"));
  spoiled = sound;
  first(spoiled, Op::Send).waits.clear();
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("may begin before"));
  spoiled = sound;
  {
    std::vector<Instruction>& list = own_list(spoiled.train).instructions;
    const auto vote = std::ranges::find(list, Op::Vote, &Instruction::op);
    const auto update = std::ranges::find(list, Op::Update, &Instruction::op);
    std::swap(vote->op, update->op);
    std::swap(vote->bucket, update->bucket);
  }
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("changes weights before the vote"));
  spoiled = sound;
  {
    std::vector<Instruction>& list = own_list(spoiled.train).instructions;
    list.push_back({.id = InstructionId(list.size()), .op = Op::Vote});
  }
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("comes behind the vote"));
  spoiled = sound;
  first(spoiled, Op::Vote).op = Op::Start;
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("the plan has no such group"));
  spoiled = sound;
  first(spoiled, Op::Vote).op = static_cast<Op>(99);
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("has a kind, stream, task or role"));
  spoiled = sound;
  first(spoiled, Op::Send).stream = StreamId(7);
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("has a kind, stream, task or role"));
  spoiled = sound;
  own_list(spoiled.train).slots = -1;
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("has -1 slots"));
  own_list(spoiled.train).slots = std::numeric_limits<std::int32_t>::max();
  CHECK_THAT(setup_refusal(spoiled), ContainsSubstring("P-9"));
}

TEST_CASE("the halves of a backward come once, and in order", "[executor][bind]") {
  RankSetup setup = setup_of(Rank(1));
  for (Instruction& i : own_list(setup.train).instructions) {
    if (i.op == Op::Run && i.task.kind == CellKind::BackwardInput) {
      i.task.kind = CellKind::Backward;
    }
  }
  CHECK_THAT(setup_refusal(setup), ContainsSubstring("does not fit stage \"s1\""));
}

TEST_CASE("a list for other stages than the rank has is refused", "[executor][bind]") {
  RankSetup setup = setup_of(Rank(0));
  setup.stages = setup_of(Rank(1)).stages;
  CHECK_THAT(setup_refusal(setup),
             ContainsSubstring("rank 0 has another program for stage 0 than its list"));
  setup = setup_of(Rank(0));
  own_program(setup.stages).inputs[0].value = ValueId(999);
  CHECK_THAT(setup_refusal(setup),
             ContainsSubstring("does not fit stage \"s0\"") &&
                 ContainsSubstring("has no slot for its input %999"));
  setup = setup_of(Rank(0));
  own_program(setup.stages).outputs[0].consumers[0] = StageId(7);
  CHECK_THAT(setup_refusal(setup), ContainsSubstring("another program for stage 0"));
  setup = setup_of(Rank(0));
  own_program(setup.stages).outputs[0].consumers[0] = StageId(0);
  CHECK_THAT(setup_refusal(setup), ContainsSubstring("has no slot for the gradient of its output"));
}

}  // namespace
}  // namespace stagecraft
