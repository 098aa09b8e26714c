/// Tests P-13: exchanges of samples around the tasks of divided chunks.
#include "stagecraft/compiler/plan/exchange_check.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/compiler/plan/expert_plans.h"
#include "stagecraft/tests/compiler/plan/small_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::divided_plan;
using testing::expert_program;
using testing::mentions;

Plan small_plan() {
  return divided_plan(expert_program(2, 4),
                      build_schedule("1f1b", {.devices = 2, .microbatches = 2}))
      .plan;
}

std::ptrdiff_t exchanges_in(const RankList& list) {
  return std::ranges::count_if(
      list.instructions, [](const Instruction& i) { return is_exchange(i) && i.op == Op::Start; });
}

/// Each stage has one divided chunk: two exchanges for a forward, two for a backward.
TEST_CASE("P-13: plans of every kind of schedule exchange around each task of a divided chunk",
          "[compiler][plan][experts]") {
  struct Case {
    std::string builder;
    int devices, stages, microbatches;
  };
  const Case c = GENERATE(Case{"gpipe", 2, 2, 2},
                          Case{"1f1b", 2, 2, 4},
                          Case{"zb-h1", 2, 2, 4},
                          Case{"interleaved", 2, 4, 2},
                          Case{"zb-v", 2, 4, 4},
                          Case{"dualpipev", 2, 4, 4});
  CAPTURE(c.builder);
  const Plan plan =
      divided_plan(
          expert_program(c.stages, 2 * c.microbatches),
          build_schedule(c.builder, {.devices = c.devices, .microbatches = c.microbatches}))
          .plan;
  CHECK(verify(plan).empty());
  std::ptrdiff_t exchanges = 0;
  for (const RankList& list : plan.lists) {
    exchanges += exchanges_in(list);
  }
  CHECK(exchanges == 4 * c.stages * c.microbatches);
}

/// Layers beside the experts read nothing of them: they come before the region, and behind it.
struct SharedExperts : torch::nn::Module {
  SharedExperts() {
    for (const char* name : {"first", "before", "behind", "last"}) {
      layers.push_back(register_module(name, torch::nn::Linear(8, 8)));
    }
    weights = register_parameter("weights", torch::randn({4, 8, 8}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = torch::tanh(layers[0](x));
    const torch::Tensor in = h.unsqueeze(0).expand({4, -1, -1}).contiguous();
    const torch::Tensor before = torch::tanh(layers[1](h));
    const torch::Tensor out = region("EP", [&] { return torch::bmm(in, weights); });
    const torch::Tensor behind = torch::tanh(layers[2](h));
    return layers[3](out.sum(0) + before + behind);
  }
  std::vector<torch::nn::Linear> layers;
  torch::Tensor weights;
};

TEST_CASE("P-13: chunks that read nothing of a divided one wait for its exchanges all the same",
          "[compiler][plan][experts]") {
  SharedExperts module;
  const torch::Tensor x = torch::randn({12, 8});
  const Program program = compile(
      module, {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 4});
  const bool shards = GENERATE(false, true);
  const Plan plan = divided_plan(program,
                                 build_schedule("gpipe", {.devices = 1, .microbatches = 2}),
                                 2,
                                 {.bucket_bytes = 100, .shard_parameters = shards})
                        .plan;
  CHECK(verify(plan).empty());
  CHECK(plan.tables.buckets.size() >= 4);
  CHECK(exchanges_in(plan.lists[0]) == 8);
}

TEST_CASE("the members of an overlap group exchange under each other's tasks",
          "[compiler][plan][experts]") {
  const Plan plan = divided_plan(expert_program(4, 8),
                                 build_schedule("dualpipev", {.devices = 2, .microbatches = 4}))
                        .plan;
  int hidden = 0;
  for (const RankList& list : plan.lists) {
    const std::vector<Instruction>& all = list.instructions;
    for (auto start = all.begin(); start != all.end(); ++start) {
      if (!is_exchange(*start) || start->op != Op::Start) {
        continue;
      }
      for (auto i = start;
           !(i->op == Op::Finish && i->group == start->group && i->round == start->round);
           ++i) {
        hidden += i->op == Op::Run && i->task != start->task ? 1 : 0;
      }
    }
  }
  CHECK(hidden > 0);
}

TEST_CASE("P-13: every way to break an exchange is found", "[compiler][plan][experts]") {
  const Plan sound = small_plan();
  REQUIRE(verify(sound).empty());
  const RankList& list = sound.lists[0];
  struct Spoiler {
    std::string expected;
    std::function<void(std::vector<Instruction>&, PlanTables&)> spoil;
  };
  const auto start_of = [](std::vector<Instruction>& all, bool returns, Op op = Op::Start) {
    return std::ranges::find_if(all, [&](const Instruction& i) {
      return is_exchange(i) && i.op == op && i.returns == returns;
    });
  };
  const Spoiler spoilers[] = {
      {"is out of its turn", [&](auto& all, auto&) { start_of(all, false)->returns = true; }},
      {"comes twice", [&](auto& all, auto&) { start_of(all, true)->returns = false; }},
      {"is out of its turn",
       [&](auto& all, auto&) { start_of(all, true, Op::Finish)->returns = false; }},
      {"expected round 0", [&](auto& all, auto&) { start_of(all, false)->round = 3; }},
      {"has no start of its own",
       [&](auto& all, auto&) { start_of(all, false, Op::Finish)->round = 3; }},
      {"its group does other things",
       [&](auto& all, auto&) { start_of(all, false)->chunks.first = 0; }},
      {"its group does other things",
       [&](auto& all, auto&) { start_of(all, false)->reads[0].value.role = Role::Activation; }},
      {"its group does other things",
       [&](auto& all, auto&) { start_of(all, false)->reads[0].value.microbatch = Microbatch(1); }},
      {"reads 0", [&](auto& all, auto&) { start_of(all, false)->reads.clear(); }},
      {"is of nothing that the plan has",
       [&](auto&, PlanTables& tables) {
         for (PlanGroup& group : tables.groups) {
           group.sharing = Sharing::Gradients;
         }
       }},
      {"by itself, between two exchanges",
       [&](auto& all, auto&) {
         const auto run = std::ranges::find_if(all, [](const Instruction& i) {
           return i.op == Op::Run && i.chunks == ChunkRange{1, 1};
         });
         run->chunks.count = 2;
       }},
      {"before the samples of chunk 1 have returned",
       [&](auto& all, auto&) {
         const auto finish = start_of(all, true, Op::Finish);
         std::erase((finish + 1)->waits, finish->id);
         std::rotate(finish, finish + 1, finish + 2);
       }},
  };
  for (const Spoiler& one : spoilers) {
    RankList spoiled = list;
    PlanTables tables = sound.tables;
    one.spoil(spoiled.instructions, tables);
    const auto faults = verify(spoiled, tables, "it");
    CAPTURE(one.expected, faults);
    CHECK(mentions(faults, one.expected));
  }
}

TEST_CASE("P-13: the ranks that divide weights are those of one list",
          "[compiler][plan][experts]") {
  Plan plan = small_plan();
  for (PlanGroup& group : plan.tables.groups) {
    if (group.kind == PlanGroup::Kind::Divided) {
      group.sets[0].pop_back();
    }
  }
  CHECK(mentions(verify(plan), "P-13: group"));
  CHECK(mentions(verify(plan), "its ranks are not those of one list"));
}

TEST_CASE("P-13: copies of a part are summed with each other alone", "[compiler][plan][experts]") {
  const Plan sound =
      divided_plan(expert_program(1, 4), gpipe(1, 1), /*copies=*/4, {}, /*parts=*/2).plan;
  CHECK(verify(sound).empty());
  CHECK_THAT(to_string(sound),
             ContainsSubstring("chunk 1 of stage 0, divided, on ranks 0, 1; on ranks 2, 3") &&
                 ContainsSubstring("chunk 1 of stage 0 on ranks 0, 2; on ranks 1, 3"));
  using Groups = std::vector<PlanGroup>;
  const std::pair<std::string, std::function<void(Groups&)>> spoilers[] = {
      {"it sums parts of ranks that have other ones",
       [](Groups& all) {
         for (PlanGroup& group : all) {
           if (group.sums_parts()) {
             group.sets = {{Rank(0), Rank(1)}, {Rank(2), Rank(3)}};
           }
         }
       }},
      {"it sums parts of ranks that have other ones",
       [](Groups& all) {
         for (PlanGroup& group : all) {
           if (group.sums_parts()) {
             group.sets = {{Rank(0), Rank(1), Rank(2), Rank(3)}};
           }
         }
       }},
      {"nothing sums the gradients of the parts of bucket 1",
       [](Groups& all) { std::erase_if(all, &PlanGroup::sums_parts); }},
      {"it sums parts of ranks that have other ones",
       [](Groups& all) {
         for (PlanGroup& group : all) {
           if (group.kind == PlanGroup::Kind::Divided) {
             group.sets = {{Rank(0), Rank(1), Rank(2), Rank(3)}};
           }
         }
       }},
      {"it sums parts of a bucket that no ranks divide",
       [](Groups& all) {
         std::erase_if(all, [](const PlanGroup& g) { return g.kind == PlanGroup::Kind::Divided; });
       }},
      {"copies of a part share what they hold",
       [](Groups& all) {
         std::ranges::find_if(all, &PlanGroup::sums_parts)->sharing = Sharing::States;
       }},
      {"is of nothing that the plan has",
       [](Groups& all) {
         for (PlanGroup& group : all) {
           if (group.kind == PlanGroup::Kind::Divided) {
             group.sets.back().pop_back();
           }
         }
       }},
  };
  for (const auto& [expected, spoil] : spoilers) {
    Plan plan = sound;
    spoil(plan.tables.groups);
    CAPTURE(expected, verify(plan));
    CHECK(mentions(verify(plan), expected));
  }
}

TEST_CASE("P-13: a rank is in one of the sets that divide weights", "[compiler][plan][experts]") {
  Plan plan = divided_plan(expert_program(1, 4), gpipe(1, 1), /*copies=*/4, {}, /*parts=*/2).plan;
  for (PlanGroup& group : plan.tables.groups) {
    if (group.kind == PlanGroup::Kind::Divided) {
      group.sets[1] = group.sets[0];
    } else if (group.sums_parts()) {
      group.sets = {{Rank(0), Rank(0)}, {Rank(1), Rank(1)}};
    }
  }
  CHECK(mentions(verify(plan), "its ranks are not those of one list"));
}

TEST_CASE("P-13: ranks that divide weights take the microbatches in their order",
          "[compiler][plan][experts]") {
  const Plan sound =
      divided_plan(expert_program(1, 8), gpipe(1, 2), /*copies=*/4, {}, /*parts=*/2).plan;
  const auto& list = sound.lists.front().instructions;
  const auto second = std::ranges::find_if(list, [](const Instruction& i) {
    return is_exchange(i) && i.task.microbatch == Microbatch(1);
  });
  REQUIRE(second != list.end());
  CHECK((exchanged_microbatches(sound.tables, Rank(1), *second) ==
         std::vector{Microbatch(1), Microbatch(3)}));
  CHECK((exchanged_microbatches(sound.tables, Rank(2), *second) ==
         std::vector{Microbatch(5), Microbatch(7)}));
  Plan plan = sound;
  std::swap(plan.ranks[1].first_microbatch, plan.ranks[2].first_microbatch);
  CHECK(mentions(verify(plan), "its ranks do not take the microbatches in their order"));
}

TEST_CASE("a plan says which ranks divide what, and for which tasks they exchange",
          "[compiler][plan][experts]") {
  CHECK_THAT(to_string(small_plan()),
             ContainsSubstring(": chunk 1 of stage 0, divided, on ranks 0, 2") &&
                 ContainsSubstring("start all-to-all of group") &&
                 ContainsSubstring(" for 0F0.1 reads") && ContainsSubstring(" after 0B1.1 reads"));
}

}  // namespace
}  // namespace stagecraft
