/// Tests the text of plans, and the rules that a plan must keep.
#include "stagecraft/compiler/plan/plan.h"

#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"
#include "stagecraft/tests/compiler/plan/small_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::chain_program;
using testing::first;
using testing::list_of;
using testing::mentions;
using testing::plan_of;
using testing::two_by_two;

TEST_CASE("docs/plan-text.md shows the plan of a chain of two stages", "[compiler][plan][docs]") {
  std::ifstream page("docs/plan-text.md");
  REQUIRE(page.good());
  const std::string text(std::istreambuf_iterator<char>(page), {});
  const Plan plan = plan_of(chain_program(2, 2), two_by_two());
  CHECK_THAT(text, ContainsSubstring("```text\n" + to_string(plan) + "```\n"));
}

TEST_CASE("a plan prints what each rank does", "[compiler][plan]") {
  const std::string text = to_string(plan_of(chain_program(2, 2), two_by_two()));
  CHECK_THAT(text,
             ContainsSubstring("rank 1: ") && ContainsSubstring("run 1F0") &&
                 ContainsSubstring("send edge") && ContainsSubstring("from the driver") &&
                 ContainsSubstring("vote") && ContainsSubstring("update stage 0"));
}

TEST_CASE("ranks that share a list are printed once", "[compiler][plan]") {
  const std::string text = to_string(plan_of(chain_program(2, 4),
                                             Schedule::parse("@place 0=0,2 1=1,3\n"
                                                             "0F0 0F1 .   0B0 .   0B1\n"
                                                             ".   1F0 1B0 1F1 1B1 .  \n")));
  CHECK_THAT(text,
             ContainsSubstring("training plan, 4 microbatches, 104 instructions") &&
                 ContainsSubstring("group 1: stage 1 on ranks 1, 3\n") &&
                 ContainsSubstring("\nranks 0, 2: 5 slots\n") &&
                 ContainsSubstring("send edge 1 mb 0 to ranks 1, 3 reads") &&
                 ContainsSubstring("finish all-reduce of group 0"));
}

TEST_CASE("verify finds every way to break a plan", "[compiler][plan]") {
  const Plan sound = plan_of(chain_program(2, 2), two_by_two());
  const auto drop = [&](int rank, Op op) {
    Plan plan = sound;
    RankList& list = list_of(plan, rank);
    const InstructionId id = first(list, op)->id;
    list.instructions.erase(first(list, op));
    for (Instruction& i : list.instructions) {  // keep P-1 and P-6, to see the others
      std::erase(i.waits, id);
      i.id.value -= i.id > id ? 1 : 0;
      for (InstructionId& wait : i.waits) {
        wait.value -= wait > id ? 1 : 0;
      }
    }
    return verify(plan);
  };
  CHECK(mentions(drop(0, Op::Send), "P-3"));
  CHECK(mentions(drop(1, Op::Recv), "P-3"));
  CHECK(mentions(drop(0, Op::Free), "P-4"));
  CHECK(mentions(drop(1, Op::Vote), "P-7: rank 1: it never votes"));

  Plan twice = sound;
  list_of(twice, 0).instructions.push_back(*first(list_of(twice, 0), Op::Free));
  CHECK(mentions(verify(twice), "P-1"));

  Plan early = sound;
  auto& list = list_of(early, 0).instructions;
  list.front().waits.push_back(list.back().id);
  CHECK(mentions(verify(early), "P-6"));

  Plan crossed = sound;  // each rank waits for a value that the other sends later
  for (RankList& of : crossed.lists) {
    const auto receive = std::ranges::find_if(of.instructions, [](const Instruction& i) {
      return i.op == Op::Recv && i.peer != kDriverPeer;
    });
    receive->waits.clear();
    std::rotate(of.instructions.begin(), receive, receive + 1);
  }
  CHECK(mentions(verify(crossed), "P-5"));
}

const Schedule kShapes[] = {
    two_by_two(),
    Schedule::parse("0F0 0F1 .   0I0 .   0I1 0W0 0W1\n"
                    ".   1F0 1I0 1F1 1I1 1W0 1W1 .  \n"),
    Schedule::parse("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n"),
};

/// Returns plans with transfers, hand-overs within a rank, halves of backwards, groups and copies.
std::vector<Plan> sound_plans() {
  std::vector<Plan> plans;
  for (const Schedule& schedule : kShapes) {
    plans.push_back(plan_of(chain_program(2, 2), schedule));
    plans.push_back(plan_of(chain_program(2, 2), schedule, false));
  }
  const Program four = chain_program(4, 8);
  plans.push_back(plan_of(four, one_f_one_b(four.stage_graph(), 8)));
  plans.push_back(plan_of(chain_program(4, 4), dualpipev(2, 4)));
  plans.push_back(testing::chimera_plan());
  plans.push_back(testing::divided_plan(testing::expert_program(2, 4), two_by_two()).plan);
  plans.push_back(plan_of(chain_program(2, 6),
                          Schedule::parse("@place 0=0 1=1,2,3\n"
                                          "0F0 0F1 .   0B0 .   0B1\n"
                                          ".   1F0 1B0 1F1 1B1 .  \n")));
  return plans;
}

TEST_CASE("P-2, P-4, P-6: no wait of a plan can be left out", "[compiler][plan]") {
  std::size_t waits = 0;
  for (const Plan& sound : sound_plans()) {
    CHECK(verify(sound).empty());
    for (RankList list : sound.lists) {
      for (Instruction& instruction : list.instructions) {
        const std::vector<InstructionId> all = instruction.waits;
        for (const InstructionId needed : all) {
          std::erase(instruction.waits, needed);
          INFO(to_string(instruction) << " without its wait for i" << needed.value);
          CHECK(mentions(verify(list, sound.tables, "it"),
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
  const Plan sound = plan_of(chain_program(2, 2), two_by_two());
  REQUIRE(verify(sound.lists[0], sound.tables, "it").empty());
  const auto faults_of = [&](Op op, auto&& spoil) {
    RankList list = sound.lists[0];
    spoil(*first(list, op));
    return verify(list, sound.tables, "it");
  };
  CHECK(mentions(faults_of(Op::Free, [](Instruction& i) { i.reads.clear(); }), "P-9"));
  CHECK(
      mentions(faults_of(Op::Send, [](Instruction& i) { i.reads.push_back(i.reads[0]); }), "P-9"));
  CHECK(mentions(faults_of(Op::Recv, [](Instruction& i) { i.writes.clear(); }), "P-9"));
  CHECK(mentions(faults_of(Op::Accumulate, [](Instruction& i) { i.reads.clear(); }), "P-9"));
  CHECK(mentions(faults_of(Op::Recv, [](Instruction& i) { i.writes[0].slot = SlotId(99); }),
                 "the list has no slot 99"));
  CHECK(mentions(faults_of(Op::Send, [](Instruction& i) { i.reads[0].slot = SlotId(-1); }), "P-9"));
  CHECK(mentions(faults_of(Op::Run, [](Instruction& i) { i.task.stage = StageId(1); }),
                 "stage 1 is not in this list"));
  CHECK(mentions(faults_of(Op::Run, [](Instruction& i) { i.task.kind = CellKind::Idle; }), "P-9"));
  CHECK(mentions(faults_of(Op::Run, [](Instruction& i) { i.task.microbatch = Microbatch(-1); }),
                 "P-9"));
  CHECK(mentions(faults_of(Op::Run, [](Instruction& i) { i.chunks.count = 0; }), "no chunk"));
  CHECK(mentions(faults_of(Op::Send, [](Instruction& i) { i.peer = PeerId(9); }), "no peer 9"));
  CHECK(mentions(faults_of(Op::Update, [](Instruction& i) { i.bucket = 7; }), "no such bucket"));
  CHECK(mentions(faults_of(Op::Update, [](Instruction& i) { i.bucket = 1; }), "of other stages"));
  CHECK(mentions(faults_of(Op::Vote, [](Instruction& i) { i.id = InstructionId(0); }), "P-1"));
  CHECK(mentions(faults_of(Op::Vote, [](Instruction& i) { i.stream = StreamId(1); }), "P-2"));
  CHECK(mentions(faults_of(Op::Send, [](Instruction& i) { i.stream = StreamId(8); }), "P-9"));

  Plan plan = sound;
  first(list_of(plan, 0), Op::Send)->edge = EdgeId(99);
  CHECK(mentions(verify(plan), "no such edge"));
  plan = sound;
  plan.ranks[0].peers.pop_back();
  CHECK(mentions(verify(plan), "its peers are not those of its list"));
  plan = sound;
  plan.ranks[1].list = 5;
  CHECK(mentions(verify(plan), "has no list"));
  plan = testing::chimera_plan();
  first(list_of(plan, 0), Op::Start)->group = -1;
  CHECK(mentions(verify(plan), "no such group"));
  plan = testing::chimera_plan();
  first(list_of(plan, 0), Op::Start)->collective = CollectiveKind::AllToAll;
  CHECK(mentions(verify(plan), "P-9: rank 0"));
  plan = testing::chimera_plan();
  plan.tables.groups[0].sets[0].emplace_back(44);
  CHECK(mentions(verify(plan), "group 0 has ranks that the plan has not"));
}

TEST_CASE("P-2: the tasks of an overlap group wait for nothing of each other", "[compiler][plan]") {
  Plan plan = plan_of(chain_program(4, 4), dualpipev(2, 4));
  std::vector<Instruction>& list = plan.lists[0].instructions;
  const auto in_group =
      std::ranges::find_if(list, [](const Instruction& i) { return i.overlap >= 0; });
  REQUIRE(in_group != list.end());
  const auto other = std::find_if(in_group, list.end(), [&](const Instruction& i) {
    return i.overlap == in_group->overlap && i.task != in_group->task;
  });
  REQUIRE(other != list.end());
  other->waits.push_back(in_group->id);
  CHECK(mentions(verify(plan), "of another task of its overlap group"));
}

TEST_CASE("P-8: a backward that does nothing writes nothing", "[compiler][plan]") {
  torch::manual_seed(0);
  testing::MixedChain module(
      {testing::MixedChain::Kind::Frozen, testing::MixedChain::Kind::Trained});
  const auto x = torch::randn({4, 8});
  Plan plan = plan_of(
      compile(module,
              {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 2}),
      two_by_two());
  auto& list = list_of(plan, 0).instructions;
  const auto idle = std::ranges::find_if(list, &Instruction::does_nothing);
  REQUIRE(idle != list.end());
  idle->writes.push_back({SlotId(0), {kNoValue, Role::ParameterGradient, StageId(0)}});
  CHECK(mentions(verify(plan), "P-8: rank 0"));
}

// ---- sums ---------------------------------------------------------------------------------------

TEST_CASE("P-7: a sum that is missing, twice, early or of another group is found",
          "[compiler][plan][copies]") {
  const auto faults_of = [](auto&& spoil) {
    Plan plan = testing::chimera_plan();
    spoil(list_of(plan, 1).instructions, first(list_of(plan, 1), Op::Start));
    return verify(plan);
  };
  CHECK(mentions(faults_of([](auto& list, auto start) {
                   start->group =
                       std::ranges::find(start + 1, list.end(), Op::Start, &Instruction::op)->group;
                 }),
                 "its group sums twice"));
  CHECK(mentions(faults_of([](auto& list, auto) {
                   const auto finish = std::ranges::find(list, Op::Finish, &Instruction::op);
                   finish->op = Op::Free;
                   finish->reads = list.front().writes;
                 }),
                 "is started and never finished"));
  CHECK(mentions(faults_of([](auto& list, auto start) {
                   start->waits.clear();
                   std::rotate(list.begin(), start, start + 1);
                 }),
                 "adds to gradients behind their sum"));
  CHECK(mentions(faults_of([](auto&, auto start) { start->waits.clear(); }), "may begin before"));
  Plan plan = testing::chimera_plan();
  plan.tables.groups[0].sets[0].pop_back();
  CHECK(mentions(verify(plan), "P-7: rank 1 sums in, and is no member of, group 0"));
}

TEST_CASE("P-7: weights of shards are gathered once, behind their update",
          "[compiler][plan][shards]") {
  const Schedule schedule = in_copies(two_by_two(), 2);
  const Layout layout = Layout::of(schedule);
  const Plan sound = lower(chain_program(2, 4),
                           strategy_of(schedule, layout, {.shard_optimizer = true}),
                           layout,
                           true)
                         .plan;
  CHECK(verify(sound).empty());
  CHECK(copies_differ(sound));
  CHECK_THAT(to_string(sound),
             ContainsSubstring("group 1: stage 1, in shards, on ranks 1, 3\n") &&
                 ContainsSubstring("start reduce-scatter of group 0") &&
                 ContainsSubstring("finish all-gather of group 0"));
  const auto faults_of = [&](auto&& spoil) {
    Plan plan = sound;
    auto& list = list_of(plan, 1).instructions;
    const auto gather = std::ranges::find_if(list, [&](const Instruction& i) {
      return i.op == Op::Start && gathers_weights(plan.tables, i);
    });
    REQUIRE(gather != list.end());
    spoil(plan, list, gather);
    return verify(plan);
  };
  CHECK(mentions(faults_of([](Plan&, auto&, auto gather) { gather->waits.clear(); }),
                 "may begin before"));
  CHECK(mentions(faults_of([](Plan&, auto& list, auto gather) {
                   gather->waits.clear();
                   const auto update = std::ranges::find(list, Op::Update, &Instruction::op);
                   std::rotate(update, gather, gather + 1);
                 }),
                 "gathers weights before their update"));
  CHECK(mentions(faults_of([](Plan&, auto& list, auto) {
                   list.back().op = Op::Free;
                   list.back().reads = list.front().writes;
                 }),
                 "are never gathered"));
  CHECK(mentions(faults_of([](Plan& plan, auto&, auto) {
                   RankList& list = list_of(plan, 0);  // of stage 0, on ranks 0 and 2
                   plan.lists.push_back(list);
                   for (Instruction& i : plan.lists.back().instructions) {
                     if (is_collective(i.op) && gathers_weights(plan.tables, i)) {
                       i.stream = kCompute;
                     }
                   }
                   plan.ranks[2].list = static_cast<std::int32_t>(plan.lists.size()) - 1;
                 }),
                 "its members gather on streams of other names: compute, gather"));
  CHECK(mentions(faults_of([](Plan&, auto& list, auto) {
                   for (Instruction& i : list) {
                     if (i.collective == CollectiveKind::ReduceScatter) {
                       i.collective = CollectiveKind::AllReduce;
                     }
                   }
                 }),
                 "scattered if these have shards"));
  CHECK(mentions(
      faults_of([](Plan& plan, auto&, auto) { plan.tables.groups[0].sharing = Sharing::Nothing; }),
      "P-7"));
}

TEST_CASE("P-11: a group that shares gradients sums what tasks have made, round by round",
          "[compiler][plan][shards]") {
  const Schedule schedule = in_copies(two_by_two(), 2);
  const Layout layout = Layout::of(schedule);
  const Plan sound = lower(chain_program(2, 4),
                           strategy_of(schedule, layout, {.shard_gradients = true}),
                           layout,
                           true)
                         .plan;
  CHECK(verify(sound).empty());
  CHECK_THAT(to_string(sound),
             ContainsSubstring("group 1: stage 1, in shards, in rounds, on ranks 1, 3\n") &&
                 ContainsSubstring("start reduce-scatter of group 1 round 1"));
  using List = std::vector<Instruction>;
  const auto faults_of = [&](auto&& spoil) {
    Plan plan = sound;
    List& list = list_of(plan, 1).instructions;  // 1F0 1B0 1F1 1B1: two rounds
    const auto start = std::ranges::find_if(
        list, [](const Instruction& i) { return i.op == Op::Start && i.round == 1; });
    REQUIRE(start != list.end());
    spoil(plan, list, start);
    return verify(plan);
  };
  CHECK(mentions(faults_of([](Plan&, List&, auto start) { start->round = 2; }),
                 "expected round 1, found round 2"));
  CHECK(mentions(faults_of([](Plan&, List&, auto start) { start->waits.clear(); }),
                 "may begin before"));
  CHECK(mentions(faults_of([](Plan&, List& list, auto) {
                   for (Instruction& i : list) {
                     if (i.op == Op::Run && i.task.kind == CellKind::Backward) {
                       i.waits.clear();
                     }
                   }
                 }),
                 "P-11"));
  CHECK(mentions(faults_of([](Plan&, List& list, auto start) {
                   const auto finish =
                       std::ranges::find(start, list.end(), Op::Finish, &Instruction::op);
                   REQUIRE(finish != list.end());
                   finish->op = Op::Free;
                   finish->reads = list.front().writes;
                 }),
                 "is started and never finished"));
  CHECK(mentions(faults_of([](Plan&, List& list, auto start) {
                   const auto accumulate = std::ranges::find(
                       std::reverse_iterator(start), list.rend(), Op::Accumulate, &Instruction::op);
                   REQUIRE(accumulate != list.rend());
                   accumulate->op = Op::Free;
                 }),
                 "no task has made gradients since the round before it"));
  CHECK(mentions(faults_of([](Plan&, List& list, auto start) {
                   start->op = Op::Free;
                   start->reads = list.front().writes;
                 }),
                 "no round of group 1 sums its last gradients"));
  CHECK(mentions(
      faults_of([](Plan& plan, List&, auto) { plan.tables.groups[1].sharing = Sharing::States; }),
      "its group sums twice"));
  CHECK(mentions(faults_of([](Plan& plan, List&, auto) {
                   plan.tables.groups[1].sharing = static_cast<Sharing>(7);
                 }),
                 "P-9: group 1 is of nothing that the plan has"));
}

TEST_CASE("P-12: weights are there for the tasks that use them, and given back after these",
          "[compiler][plan][shards]") {
  const Schedule schedule = in_copies(two_by_two(), 2);
  const Layout layout = Layout::of(schedule);
  const Plan sound = lower(chain_program(2, 4),
                           strategy_of(schedule, layout, {.shard_parameters = true}),
                           layout,
                           true)
                         .plan;
  CHECK(verify(sound).empty());
  CHECK_THAT(to_string(sound),
             ContainsSubstring("in shards, in rounds, weights too, on ranks 1, 3\n") &&
                 ContainsSubstring("release weights of group 1"));
  using List = std::vector<Instruction>;
  const auto faults_of = [&](auto&& spoil) {
    Plan plan = sound;
    List& list = list_of(plan, 1).instructions;
    const auto gather = std::ranges::find_if(list, [&](const Instruction& i) {
      return i.op == Op::Start && gathers_weights(plan.tables, i);
    });
    const auto release = std::ranges::find(list, Op::Release, &Instruction::op);
    REQUIRE((gather != list.end() && release != list.end()));
    spoil(list, gather, release);
    return verify(plan);
  };
  CHECK(mentions(faults_of([](List& list, auto, auto) {
                   for (Instruction& i : list) {
                     if (i.op == Op::Run) {
                       i.waits.clear();
                     }
                   }
                 }),
                 "P-12"));
  CHECK(mentions(faults_of([](List& list, auto, auto release) {
                   const auto run = std::ranges::find(
                       std::reverse_iterator(release), list.rend(), Op::Run, &Instruction::op);
                   std::rotate(run.base() - 1, release, release + 1);
                 }),
                 "uses weights that group 1 has not gathered"));
  CHECK(mentions(faults_of([](List&, auto, auto release) { release->op = Op::Free; }), "P-9"));
  CHECK(mentions(faults_of([](List&, auto, auto release) { release->group = 0; }),
                 "P-12: ranks 1, 3, i"));
  CHECK(mentions(faults_of([](List&, auto, auto release) { release->group = 9; }),
                 "the plan has no such group"));
  CHECK(mentions(faults_of([](List& list, auto, auto release) { list.erase(release); }), "P-1"));
  CHECK(mentions(faults_of([](List&, auto gather, auto) { gather->round = 1; }),
                 "expected round 0, found round 1"));
}

TEST_CASE("P-12: a round of weights begins after those of the round before it are given back",
          "[compiler][plan][shards]") {
  const auto two_rounds = [](auto&& spoil) {
    const Schedule schedule = in_copies(two_by_two(), 2);
    const Layout layout = Layout::of(schedule);
    Plan plan = lower(chain_program(2, 4),
                      strategy_of(schedule, layout, {.shard_parameters = true}),
                      layout,
                      true)
                    .plan;
    // Stage 0 runs 0F0 0F1 0B0 0B1 with its weights. A second round of them follows at the end.
    std::vector<Instruction>& list = list_of(plan, 0).instructions;
    const auto gather = std::ranges::find_if(list, [&](const Instruction& i) {
      return i.op == Op::Start && gathers_weights(plan.tables, i);
    });
    const auto release = std::ranges::find(list, Op::Release, &Instruction::op);
    std::vector<Instruction> more{*gather, *gather, *release};
    more[1].op = Op::Finish;
    more[0].waits = {release->id};
    for (std::size_t i = 0; i < more.size(); ++i) {
      more[i].id = InstructionId(list.size() + i);
      more[i].round = more[i].op == Op::Release ? 0 : 1;
    }
    more[2].waits = {more[1].id};
    spoil(more);
    list.insert(release + 1, more.begin(), more.end());
    return verify(plan);
  };
  CHECK(two_rounds([](auto&) {}).empty());
  CHECK(mentions(two_rounds([](auto& more) { more[0].waits.clear(); }), "P-12"));
  CHECK(mentions(two_rounds([](auto& more) { more[2].waits.clear(); }), "P-12"));
  CHECK(mentions(two_rounds([](auto& more) { more.pop_back(); }), "are never given back"));
}

TEST_CASE("P-11: all members of a group sum in as many rounds", "[compiler][plan][shards]") {
  const Schedule schedule = in_copies(two_by_two(), 2);
  const Layout layout = Layout::of(schedule);
  const auto lowered = [&](const ReplicateOptions& options) {
    return lower(chain_program(2, 4), strategy_of(schedule, layout, options), layout, true).plan;
  };
  Plan plan = lowered({.shard_gradients = true});
  const Plan once = lowered({.shard_optimizer = true});
  plan.lists.push_back(once.lists[1]);  // one round
  plan.ranks[3].list = 2;
  CHECK(!verify(plan).empty());
  CHECK(mentions(verify(plan), "P-11: "));
}

TEST_CASE("copies of a stage on one rank cannot have shards", "[compiler][plan][shards]") {
  const Schedule schedule = Schedule::parse("@replicas 0=1\n0F0 1F0 0B0 1B0\n");
  const Layout layout = Layout::of(schedule);
  const Strategy strategy = strategy_of(schedule, layout, {.shard_optimizer = true});
  CHECK_THROWS_WITH(
      lower(chain_program(1, 2), strategy, layout, true),
      ContainsSubstring("stages 0 and 1 are copies of one stage on [0]: leave shards out"));
}

TEST_CASE("P-7: sums over ties come behind those over copies, where the tie's stages are",
          "[compiler][plan][ties]") {
  const auto faults_of = [&](auto&& spoil) {
    Plan plan = plan_of(testing::tied_program(2, 4), chimera(2, 4));
    spoil(plan, list_of(plan, 1).instructions);
    return verify(plan);
  };
  const auto start_of = [](std::vector<Instruction>& list, int group) {
    return std::ranges::find_if(
        list, [&](const Instruction& i) { return i.op == Op::Start && i.group == group; });
  };
  CHECK(mentions(faults_of([&](Plan&, auto& list) {
                   for (Instruction& i : list) {
                     i.stream = is_collective(i.op) && i.group == 3 ? StreamId(1) : i.stream;
                   }
                   start_of(list, 3)->waits.clear();
                 }),
                 "may begin before"));
  CHECK(mentions(faults_of([&](Plan&, auto& list) {
                   start_of(list, 3)->collective = CollectiveKind::AllReduce;
                 }),
                 "gathered over a tie"));
  CHECK(mentions(faults_of([](Plan& of, auto&) {
                   std::swap(of.tables.groups[2].stages[0], of.tables.groups[2].stages[1]);
                   std::swap(of.lists[0].stages, of.lists[1].stages);
                   of.lists[0].stages.pop_back();
                 }),
                 "rank"));
  CHECK(mentions(faults_of([](Plan& of, auto&) { of.tables.groups[2].stages.pop_back(); }),
                 "group 2 is of nothing that the plan has"));
}

TEST_CASE("P-7: a tie sums the same shard of its stages, after their last round",
          "[compiler][plan][ties][shards]") {
  const Schedule schedule = in_copies(two_by_two(), 2);
  const Layout layout = Layout::of(schedule);
  const auto faults_of = [&](const ReplicateOptions& options, auto&& spoil) {
    Plan plan =
        lower(testing::tied_program(2, 4), strategy_of(schedule, layout, options), layout, true)
            .plan;
    spoil(plan, plan.tables.groups.back());
    return verify(plan);
  };
  const ReplicateOptions rounds{.shard_gradients = true};
  for (const ReplicateOptions& options :
       {ReplicateOptions{}, ReplicateOptions{.shard_optimizer = true}, rounds}) {
    CHECK(faults_of(options, [](Plan& plan, PlanGroup& tie) {
            REQUIRE(tie.kind == PlanGroup::Kind::Tie);
            CHECK((tie.sets ==
                   std::vector<std::vector<Rank>>{{Rank(0), Rank(1)}, {Rank(2), Rank(3)}}));
            CHECK(plan.tables.groups[0].sharing == plan.tables.groups[1].sharing);
          }).empty());
  }
  const auto cross = [](Plan&, PlanGroup& tie) { std::swap(tie.sets[0][1], tie.sets[1][1]); };
  CHECK(faults_of({}, cross).empty());  // all have the same whole gradients
  CHECK(mentions(faults_of(rounds, cross), "the ranks of a set have other shards"));
  CHECK(mentions(
      faults_of(rounds,
                [](Plan& plan, PlanGroup&) { plan.tables.groups[1].sharing = Sharing::Weights; }),
      "the ranks of a set have other shards"));
  CHECK(mentions(faults_of(rounds,
                           [](Plan& plan, PlanGroup&) {
                             std::vector<Instruction>& list = list_of(plan, 0).instructions;
                             const auto starts = [&](std::int32_t group) {
                               return std::ranges::find_if(list, [&](const Instruction& i) {
                                 return i.op == Op::Start && i.group == group;
                               });
                             };
                             starts(0)->waits.clear();
                             starts(2)->waits.clear();
                             std::iter_swap(starts(0), starts(2));
                           }),
                 "sums over copies behind the sum of group 2, a tie"));
}

}  // namespace
}  // namespace stagecraft
