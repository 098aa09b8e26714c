/// Lowering: counts, printed form, and the rules a plan must keep.
#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

Program chain_program(int stages, int microbatches) {
  testing::Chain module(stages);
  const auto x = torch::randn({2 * microbatches, 8});
  return compile(module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = microbatches});
}

const Schedule& two_by_two() {
  static const Schedule schedule = Schedule::parse(
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  return schedule;
}

std::size_t count(const Plan& plan, Op op) {
  std::size_t n = 0;
  for (const RankPlan& rank : plan.ranks) {
    n += static_cast<std::size_t>(std::ranges::count(rank.instructions, op, &Instruction::op));
  }
  return n;
}

TEST_CASE("a two-stage plan has the transfers of Piper's node counts", "[compiler][plan]") {
  const Plan plan = lower_schedule(chain_program(2, 2), two_by_two(), true);
  CHECK(count(plan, Op::Run) == 8);
  CHECK(count(plan, Op::Send) == 4);   // 2 (S - 1) M
  CHECK(count(plan, Op::Recv) == 4 + plan.feeds.size());
  CHECK(plan.feeds.size() == 4);       // an input and a label per microbatch
  CHECK(count(plan, Op::Accumulate) == 4);
  CHECK(count(plan, Op::Vote) == 2);
  CHECK(count(plan, Op::Update) == 2);
  CHECK(verify(plan).empty());
}

TEST_CASE("split backward lowers to the same transfers", "[compiler][plan]") {
  const Schedule split = Schedule::parse(
      "0F0 0F1 .   0I0 .   0I1 0W0 0W1\n"
      ".   1F0 1I0 1F1 1I1 1W0 1W1 .  \n");
  const Plan plan = lower_schedule(chain_program(2, 2), split, true);
  CHECK(count(plan, Op::Send) == 4);
  CHECK(count(plan, Op::Run) == 12);
  CHECK(count(plan, Op::Accumulate) == 4);
}

TEST_CASE("two stages of one rank hand over without a transfer", "[compiler][plan]") {
  const Schedule folded = Schedule::parse("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n");
  const Plan plan = lower_schedule(chain_program(2, 2), folded, true);
  REQUIRE(plan.ranks.size() == 1);
  CHECK(count(plan, Op::Send) == 0);
  CHECK((plan.ranks[0].stages == std::vector<StageId>{StageId(0), StageId(1)}));
}

TEST_CASE("a forward-only plan keeps no state and does not vote", "[compiler][plan]") {
  const Plan plan = lower_schedule(chain_program(2, 2), two_by_two(), false);
  CHECK(count(plan, Op::Run) == 4);
  CHECK(count(plan, Op::Send) == 2);
  CHECK(count(plan, Op::Vote) == 0);
  CHECK(count(plan, Op::Update) == 0);
  for (const RankPlan& rank : plan.ranks) {
    for (const Instruction& i : rank.instructions) {
      for (const SlotUse& use : i.writes) {
        CHECK(use.value.role == Role::Activation);
      }
    }
  }
}

TEST_CASE("1F1B keeps as many states alive as its bound says", "[compiler][plan][memory]") {
  const Program program = chain_program(4, 8);
  const Plan plan = lower_schedule(program, one_f_one_b(program.stage_graph(), 8), true);
  for (const RankPlan& rank : plan.ranks) {
    int alive = 0, peak = 0;
    for (const Instruction& i : rank.instructions) {
      for (const SlotUse& use : i.writes) {
        alive += use.value.role == Role::Saved ? 1 : 0;
      }
      peak = std::max(peak, alive);
      if (i.op == Op::Free && i.reads[0].value.role == Role::Saved) {
        --alive;
      }
    }
    CHECK(peak == 4 - rank.rank.value);
    CHECK(alive == 0);
  }
}

TEST_CASE("a plan prints what each rank does", "[compiler][plan]") {
  const std::string text = to_string(lower_schedule(chain_program(2, 2), two_by_two(), true));
  CHECK_THAT(text, ContainsSubstring("rank 1:") && ContainsSubstring("run 1F0") && ContainsSubstring("send edge") &&
                       ContainsSubstring("from driver") && ContainsSubstring("vote") && ContainsSubstring("update stage 0"));
}

TEST_CASE("the DAG prints its nodes, with no edge between send and receive", "[compiler][dag]") {
  const Program program = chain_program(2, 2);
  TrainingDag dag = build_training_dag(program.compiled(), two_by_two(), true);
  place(dag, {Rank(0), Rank(1)});
  order(dag, two_by_two());
  for (const DagEdge& e : dag.edges) {
    const bool joined = dag.nodes[static_cast<std::size_t>(e.from)].kind == DagKind::Send &&
                        dag.nodes[static_cast<std::size_t>(e.to)].kind == DagKind::Receive;
    CHECK_FALSE(joined);
  }
  CHECK_THAT(dag.text(), ContainsSubstring("send 0F0 on rank 0") && ContainsSubstring("receive 1F0 on rank 1"));
}

TEST_CASE("verify finds every way to break a plan", "[compiler][plan]") {
  const Plan sound = lower_schedule(chain_program(2, 2), two_by_two(), true);
  const auto drop = [&](std::size_t rank, Op op) {
    Plan plan = sound;
    auto& list = plan.ranks[rank].instructions;
    list.erase(std::ranges::find(list, op, &Instruction::op));
    return verify(plan);
  };
  const auto mentions = [](const std::vector<std::string>& faults, std::string_view rule) {
    return std::ranges::any_of(faults, [&](const std::string& f) { return f.starts_with(rule); });
  };
  CHECK(mentions(drop(0, Op::Send), "P-3"));
  CHECK(mentions(drop(0, Op::Send), "P-5"));
  CHECK(mentions(drop(1, Op::Recv), "P-3"));
  CHECK(mentions(drop(0, Op::Free), "P-4"));
  CHECK(mentions(drop(1, Op::Vote), "P-5"));

  Plan twice = sound;
  auto& list = twice.ranks[0].instructions;
  list.push_back(*std::ranges::find(list, Op::Free, &Instruction::op));
  CHECK(mentions(verify(twice), "P-4"));
  CHECK(mentions(verify(twice), "P-1"));

  Plan early = sound;
  early.ranks[0].instructions.front().waits.push_back(early.ranks[0].instructions.back().id);
  CHECK(mentions(verify(early), "P-6"));

  Plan crossed = sound;  // each rank waits for what the other sends later
  for (RankPlan& rank : crossed.ranks) {
    auto& order = rank.instructions;
    const auto is_peer_receive = [](const Instruction& i) { return i.op == Op::Recv && i.peer != kDriver; };
    const auto receive = std::ranges::find_if(order, is_peer_receive);
    std::rotate(order.begin(), receive, receive + 1);
  }
  CHECK(mentions(verify(crossed), "P-5"));
}

}  // namespace
}  // namespace stagecraft
