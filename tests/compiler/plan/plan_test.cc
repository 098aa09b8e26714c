/// Tests lowering: counts, the printed form, and the rules that a plan must keep.
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/shapes/replicate.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

Program chain_program(int stages, int microbatches) {
  testing::Chain module(stages);
  const auto x = torch::randn({2 * microbatches, 8});
  return compile(
      module,
      {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = microbatches});
}

const Schedule& two_by_two() {
  static const Schedule schedule = Schedule::parse(
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  return schedule;
}

Plan plan_of(const Program& program, const Schedule& schedule, bool training = true) {
  const Layout layout = Layout::of(schedule);
  return lower_schedule(replicate(program, layout), schedule, layout, training);
}

std::size_t count(const Plan& plan, Op op) {
  std::size_t n = 0;
  for (const RankPlan& rank : plan.ranks) {
    n += static_cast<std::size_t>(std::ranges::count(rank.instructions, op, &Instruction::op));
  }
  return n;
}

/// Returns a plan of two replicas of two stages on two ranks.
Plan chimera_plan() {
  return plan_of(chain_program(2, 4), chimera(2, 4));
}

bool mentions(const std::vector<std::string>& faults, std::string_view what) {
  return std::ranges::any_of(
      faults, [&](const std::string& fault) { return fault.find(what) != std::string::npos; });
}

TEST_CASE("a two-stage plan has the transfers of Piper's node counts", "[compiler][plan]") {
  const Plan plan = plan_of(chain_program(2, 2), two_by_two());
  CHECK(count(plan, Op::Run) == 8);
  CHECK(count(plan, Op::Send) == 4);  // 2 (S - 1) M
  CHECK(count(plan, Op::Recv) == 4 + plan.feeds.size());
  CHECK(plan.feeds.size() == 4);  // one input and one label per microbatch
  CHECK(count(plan, Op::Accumulate) == 4);
  CHECK(count(plan, Op::Vote) == 2);
  CHECK(count(plan, Op::Update) == 2);
  CHECK(verify(plan).empty());
}

TEST_CASE("docs/plan-text.md shows the plan of a chain of two stages", "[compiler][plan][docs]") {
  std::ifstream page("docs/plan-text.md");
  REQUIRE(page.good());
  const std::string text(std::istreambuf_iterator<char>(page), {});
  const Plan plan = plan_of(chain_program(2, 2), two_by_two());
  CHECK_THAT(text, ContainsSubstring("```text\n" + to_string(plan) + "```\n"));
}

TEST_CASE("split backward lowers to the same transfers", "[compiler][plan]") {
  const Schedule split = Schedule::parse(
      "0F0 0F1 .   0I0 .   0I1 0W0 0W1\n"
      ".   1F0 1I0 1F1 1I1 1W0 1W1 .  \n");
  const Plan plan = plan_of(chain_program(2, 2), split);
  CHECK(count(plan, Op::Send) == 4);
  CHECK(count(plan, Op::Run) == 12);
  CHECK(count(plan, Op::Accumulate) == 4);
}

TEST_CASE("two stages of one rank hand over without a transfer", "[compiler][plan]") {
  const Schedule folded = Schedule::parse("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n");
  const Plan plan = plan_of(chain_program(2, 2), folded);
  REQUIRE(plan.ranks.size() == 1);
  CHECK(count(plan, Op::Send) == 0);
  CHECK((plan.ranks[0].stages == std::vector<StageId>{StageId(0), StageId(1)}));
}

TEST_CASE("a row without a task has no list in the plan: ranks are numbered without it",
          "[compiler][plan]") {
  const Program program = chain_program(2, 2);
  const Schedule gaps = Schedule::parse(
      ".   .   .   .   .   .  \n"
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   .   .   .   .   .  \n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  CHECK(to_string(plan_of(program, gaps)) == to_string(plan_of(program, two_by_two())));
}

TEST_CASE("a forward-only plan keeps no state and does not vote", "[compiler][plan]") {
  const Plan plan = plan_of(chain_program(2, 2), two_by_two(), false);
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
  const Plan plan = plan_of(program, one_f_one_b(program.stage_graph(), 8));
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
  const std::string text = to_string(plan_of(chain_program(2, 2), two_by_two()));
  CHECK_THAT(text,
             ContainsSubstring("rank 1:") && ContainsSubstring("run 1F0") &&
                 ContainsSubstring("send edge") && ContainsSubstring("from the driver") &&
                 ContainsSubstring("vote") && ContainsSubstring("update stage 0"));
}

TEST_CASE("the DAG prints its nodes, with no edge between send and receive", "[compiler][dag]") {
  const Program program = chain_program(2, 2);
  StepDag dag = build_training_dag(program.compiled(), two_by_two(), true);
  place(dag, {Rank(0), Rank(1)});
  order(dag, two_by_two());
  for (const StepEdge& e : dag.edges) {
    const bool joined = dag.nodes[static_cast<std::size_t>(e.from)].kind == StepNodeKind::Send &&
                        dag.nodes[static_cast<std::size_t>(e.to)].kind == StepNodeKind::Receive;
    CHECK_FALSE(joined);
  }
  CHECK_THAT(dag.text(),
             ContainsSubstring("send 0F0 on rank 0") && ContainsSubstring("receive 1F0 on rank 1"));
}

TEST_CASE("verify finds every way to break a plan", "[compiler][plan]") {
  const Plan sound = plan_of(chain_program(2, 2), two_by_two());
  const auto drop = [&](std::size_t rank, Op op) {
    Plan plan = sound;
    auto& list = plan.ranks[rank].instructions;
    list.erase(std::ranges::find(list, op, &Instruction::op));
    return verify(plan);
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

  Plan crossed = sound;  // each rank waits for a value that the other sends later
  for (RankPlan& rank : crossed.ranks) {
    auto& order = rank.instructions;
    const auto is_peer_receive = [](const Instruction& i) {
      return i.op == Op::Recv && i.peer != kDriver;
    };
    const auto receive = std::ranges::find_if(order, is_peer_receive);
    std::rotate(order.begin(), receive, receive + 1);
  }
  CHECK(mentions(verify(crossed), "P-5"));
}

const Schedule kShapes[] = {
    two_by_two(),
    Schedule::parse("0F0 0F1 .   0I0 .   0I1 0W0 0W1\n"
                    ".   1F0 1I0 1F1 1I1 1W0 1W1 .  \n"),
    Schedule::parse("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n"),
};

/// Returns plans with transfers, hand-overs within a rank, halves of backwards, groups and
/// replicas.
std::vector<Plan> sound_plans() {
  std::vector<Plan> plans;
  for (const Schedule& schedule : kShapes) {
    plans.push_back(plan_of(chain_program(2, 2), schedule));
    plans.push_back(plan_of(chain_program(2, 2), schedule, false));
  }
  const Program four = chain_program(4, 8);
  plans.push_back(plan_of(four, one_f_one_b(four.stage_graph(), 8)));
  plans.push_back(plan_of(chain_program(4, 4), dualpipev(2, 4)));
  plans.push_back(chimera_plan());
  return plans;
}

TEST_CASE("P-2, P-4, P-6: no wait of a plan can be left out", "[compiler][plan]") {
  std::size_t waits = 0;
  for (const Plan& sound : sound_plans()) {
    CHECK(verify(sound).empty());
    for (std::size_t r = 0; r < sound.ranks.size(); ++r) {
      RankPlan rank = sound.ranks[r];
      for (Instruction& instruction : rank.instructions) {
        const std::vector<InstructionId> all = instruction.waits;
        for (const InstructionId needed : all) {
          std::erase(instruction.waits, needed);
          INFO(to_string(instruction) << " without its wait for i" << needed.value);
          CHECK(mentions(verify(rank, sound.training),
                         fmt::format("may begin before i{} is over", needed.value)));
          instruction.waits = all;
          ++waits;
        }
      }
    }
  }
  CHECK(waits > 0);
}

TEST_CASE("P-1, P-2, P-9: a list that could not be run is told what is wrong with it",
          "[compiler][plan]") {
  const RankPlan sound = plan_of(chain_program(2, 2), two_by_two()).ranks[0];
  REQUIRE(verify(sound, true).empty());
  const auto faults_of = [&](Op op, auto&& spoil) {
    RankPlan rank = sound;
    spoil(*std::ranges::find(rank.instructions, op, &Instruction::op));
    return verify(rank, true);
  };
  CHECK(mentions(faults_of(Op::Free, [](Instruction& i) { i.reads.clear(); }), "P-9"));
  CHECK(
      mentions(faults_of(Op::Send, [](Instruction& i) { i.reads.push_back(i.reads[0]); }), "P-9"));
  CHECK(mentions(faults_of(Op::Recv, [](Instruction& i) { i.writes.clear(); }), "P-9"));
  CHECK(mentions(faults_of(Op::Accumulate, [](Instruction& i) { i.reads.clear(); }), "P-9"));
  CHECK(mentions(faults_of(Op::Recv, [](Instruction& i) { i.writes[0].slot = SlotId(99); }),
                 "the rank has no slot 99"));
  CHECK(mentions(faults_of(Op::Send, [](Instruction& i) { i.reads[0].slot = SlotId(-1); }), "P-9"));
  CHECK(mentions(faults_of(Op::Run, [](Instruction& i) { i.task.stage = StageId(1); }),
                 "stage 1 is not on this rank"));
  CHECK(mentions(faults_of(Op::Run, [](Instruction& i) { i.task.kind = CellKind::Idle; }), "P-9"));
  CHECK(mentions(faults_of(Op::Run, [](Instruction& i) { i.task.microbatch = Microbatch(-1); }),
                 "P-9"));
  CHECK(mentions(faults_of(Op::Vote, [](Instruction& i) { i.id = InstructionId(0); }), "P-1"));
  CHECK(mentions(faults_of(Op::Send, [](Instruction& i) { i.stream = Stream::Compute; }), "P-2"));

  Plan plan = plan_of(chain_program(2, 2), two_by_two());
  std::ranges::find(plan.ranks[0].instructions, Op::Send, &Instruction::op)->edge = EdgeId(99);
  CHECK(mentions(verify(plan), "no such edge"));
  plan = chimera_plan();
  std::ranges::find(plan.ranks[0].instructions, Op::Collective, &Instruction::op)->group = -1;
  CHECK(mentions(verify(plan), "no such group"));
  plan = chimera_plan();
  std::ranges::find(plan.ranks[0].instructions, Op::Collective, &Instruction::op)->collective =
      CollectiveKind::AllToAll;
  CHECK(mentions(verify(plan), "P-7: rank 0"));
}

TEST_CASE("P-2: the tasks of an overlap group wait for nothing of each other", "[compiler][plan]") {
  RankPlan rank = plan_of(chain_program(4, 4), dualpipev(2, 4)).ranks[0];
  const auto in_group = [](const Instruction& i) { return i.overlap >= 0; };
  const auto first = std::ranges::find_if(rank.instructions, in_group);
  REQUIRE(first != rank.instructions.end());
  const auto other = std::find_if(first, rank.instructions.end(), [&](const Instruction& i) {
    return i.overlap == first->overlap && i.task != first->task;
  });
  REQUIRE(other != rank.instructions.end());
  other->waits.push_back(first->id);
  CHECK(mentions(verify(rank, true), "of another task of its overlap group"));
}

TEST_CASE("P-8: a backward with nothing to do keeps its place, and no tensor goes to it",
          "[compiler][plan][surplus]") {
  torch::manual_seed(0);
  testing::MixedChain module(
      {testing::MixedChain::Kind::Frozen, testing::MixedChain::Kind::Trained});
  const auto x = torch::randn({4, 8});
  const Program program = compile(
      module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2});
  const Plan plan = plan_of(program, two_by_two());
  CHECK(verify(plan).empty());
  CHECK(plan.surplus_count() == 2);
  CHECK(count(plan, Op::Run) == 8);         // the tasks of the schedule
  CHECK(count(plan, Op::Send) == 2);        // only activations
  CHECK(count(plan, Op::Accumulate) == 2);  // of stage 1
  CHECK(count(plan, Op::Update) == 1);
  CHECK(count(plan, Op::Vote) == 2);
  std::vector<std::string> tasks;
  for (const Instruction& i : plan.ranks[0].instructions) {
    if (i.op == Op::Run) {
      tasks.push_back(to_string(i.task) + (i.does_nothing() ? ", nothing" : ""));
    }
  }
  CHECK((tasks == std::vector<std::string>{"0F0", "0F1", "0B0, nothing", "0B1, nothing"}));
  CHECK_THAT(to_string(plan),
             ContainsSubstring("run 0B1, which does nothing") &&
                 ContainsSubstring("instructions (2 do nothing), driver"));
  CHECK(plan_of(program, two_by_two(), false).surplus_count() == 0);

  Plan spoiled = plan;  // an instruction reads nothing and yet writes
  for (Instruction& i : spoiled.ranks[0].instructions) {
    if (i.does_nothing()) {
      i.writes.push_back(
          {SlotId(0), {kNoValue, Role::ParameterGradient, StageId(0), Microbatch(0)}});
      break;
    }
  }
  const std::vector<std::string> faults = verify(spoiled);
  CHECK(std::ranges::any_of(faults,
                            [](const std::string& f) { return f.starts_with("P-8: rank 0"); }));
}

TEST_CASE("with two replicas every rank reduces its stages before it votes",
          "[compiler][plan][replicas]") {
  const Plan plan = chimera_plan();
  CHECK(verify(plan).empty());
  REQUIRE(plan.replica_groups.size() == 2);
  CHECK((plan.replica_groups[0].ranks == std::vector<Rank>{Rank(0), Rank(1)}));
  CHECK(plan.feeds.size() == 2 * 4);  // each microbatch's input and label go to one replica
  for (const RankPlan& rank : plan.ranks) {
    std::vector<Op> end;
    for (const Instruction& i : rank.instructions) {
      if (i.op == Op::Collective || i.op == Op::Vote) {
        end.push_back(i.op);
      }
    }
    CHECK((end == std::vector<Op>{Op::Collective, Op::Collective, Op::Vote}));
  }
}

TEST_CASE("two replicas of a stage on one rank need no other rank", "[compiler][plan][replicas]") {
  const Schedule both = Schedule::parse(
      "@form list\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 2F0 2B0 0B0\n"
      "1F0 3F0 3B0 1B0\n");
  const Plan plan = plan_of(chain_program(2, 2), both);
  CHECK(verify(plan).empty());
  CHECK((plan.replica_groups[1].ranks == std::vector<Rank>{Rank(1)}));
}

TEST_CASE("verify finds a reduction that is missing, out of order or early",
          "[compiler][plan][replicas]") {
  const auto faults_of = [](auto&& spoil) {
    Plan plan = chimera_plan();
    auto& list = plan.ranks[1].instructions;
    spoil(list, std::ranges::find(list, Op::Collective, &Instruction::op));
    const std::vector<std::string> faults = verify(plan);
    return std::ranges::count_if(faults,
                                 [](const std::string& f) { return f.starts_with("P-7: rank 1"); });
  };
  CHECK(faults_of([](auto& list, auto first) { list.erase(first); }) == 1);
  CHECK(faults_of([](auto&, auto first) { std::swap(first->group, (first + 1)->group); }) == 1);
  CHECK(faults_of([](auto& list, auto first) { std::rotate(list.begin(), first, first + 1); }) > 1);
}

TEST_CASE(
    "parts of tied parameters are summed behind the sums over replicas, and verify sees to it",
    "[compiler][plan][ties]") {
  const auto tied_plan = [](const Schedule& schedule, bool training = true) {
    testing::TiedChain module(2);
    const auto x = torch::randn({8, 8});
    return plan_of(
        compile(module,
                {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 4}),
        schedule,
        training);
  };
  const Plan plan = tied_plan(chimera(2, 4));
  CHECK(verify(plan).empty());
  REQUIRE(plan.ties.size() == 2);
  CHECK((plan.ties[0].stages == std::vector<StageId>{StageId(0), StageId(1)}));
  CHECK((plan.ties[0].ranks == std::vector<Rank>{Rank(0), Rank(1)}));
  CHECK((plan.ties[1].ranks == std::vector<Rank>{Rank(1), Rank(0)}));
  CHECK((plan.ties[1].members() == plan.ties[0].members()));
  CHECK(plan.ties[0].parameters.size() == 4);  // the frozen one has no gradient
  CHECK_THAT(to_string(plan),
             ContainsSubstring("tie 1: matrix, seen, block.weight, block.bias of stages ") &&
                 ContainsSubstring("collective all-reduce over replica group 1") &&
                 ContainsSubstring("collective all-gather over tie 1"));
  const Plan forward = tied_plan(chimera(2, 4), false);
  CHECK(forward.ties.empty());
  CHECK(count(forward, Op::Collective) == 0);

  const auto faults_of = [&](auto&& spoil) {
    Plan spoiled = plan;
    auto& list = spoiled.ranks[1].instructions;
    spoil(spoiled, list, std::ranges::find(list, Op::Collective, &Instruction::op));
    return verify(spoiled);
  };
  const std::string sums = "P-7: rank 1 sums over [";
  CHECK(mentions(faults_of([](auto&, auto& list, auto first) { list.erase(first + 2); }),
                 sums + "group 0, group 1, tie 1], expected [group 0, group 1, tie 0, tie 1]"));
  CHECK(mentions(faults_of([](auto&, auto&, auto first) {
                   std::swap(first[1].collective, first[2].collective);
                   std::swap(first[1].group, first[2].group);
                 }),
                 sums + "group 0, tie 0, group 1, tie 1]"));
  CHECK(mentions(faults_of([](auto&, auto&, auto first) { first[3].group = 2; }),
                 "the plan has no such group"));
  CHECK(mentions(
      faults_of([](auto&, auto&, auto first) { first[3].collective = CollectiveKind::AllToAll; }),
      "gathered over a tie"));
  CHECK(mentions(
      faults_of([](auto& of, auto&, auto) { std::swap(of.ties[0].ranks[0], of.ties[0].ranks[1]); }),
      "P-7: tie 0, matrix"));
  CHECK(mentions(faults_of([](auto& of, auto&, auto) { of.ties[0].stages.pop_back(); }),
                 "not where its stages are"));
}

TEST_CASE("tasks of an overlap group share no slot, so they may run in any order",
          "[compiler][plan]") {
  const Schedule schedule = dualpipev(2, 4);
  const Plan plan = plan_of(chain_program(4, 4), schedule);
  int groups = 0;
  for (const RankPlan& rank : plan.ranks) {
    std::map<int, std::set<SlotId>> written;
    for (const Instruction& i : rank.instructions) {
      if (i.overlap < 0) {
        continue;
      }
      CHECK(i.op != Op::Free);
      for (const SlotUse& use : i.writes) {
        CHECK(written[i.overlap].insert(use.slot).second);
      }
    }
    groups += static_cast<int>(written.size());
  }
  CHECK(groups > 0);
}

}  // namespace
}  // namespace stagecraft
