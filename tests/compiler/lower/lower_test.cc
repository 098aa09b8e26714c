/// Tests lowering: what the lists of a plan have, by counts worked out by hand.
#include "stagecraft/compiler/lower/lower.h"

#include <map>
#include <optional>
#include <set>
#include <string>

#include <torch/torch.h>

#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/in_chunks.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/compiler/plan/small_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::chain_program;
using testing::count;
using testing::plan_of;
using testing::two_by_two;

TEST_CASE("a two-stage plan has the transfers of Piper's node counts", "[compiler][lower]") {
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

TEST_CASE("split backward lowers to the same transfers", "[compiler][lower]") {
  const Schedule split = Schedule::parse(
      "0F0 0F1 .   0I0 .   0I1 0W0 0W1\n"
      ".   1F0 1I0 1F1 1I1 1W0 1W1 .  \n");
  const Plan plan = plan_of(chain_program(2, 2), split);
  CHECK(count(plan, Op::Send) == 4);
  CHECK(count(plan, Op::Run) == 12);
  CHECK(count(plan, Op::Accumulate) == 4);
}

TEST_CASE("two stages of one rank hand over without a transfer", "[compiler][lower]") {
  const Schedule folded = Schedule::parse("0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n");
  const Plan plan = plan_of(chain_program(2, 2), folded);
  REQUIRE(plan.ranks.size() == 1);
  CHECK(count(plan, Op::Send) == 0);
  CHECK((plan.lists[0].stages == std::vector<StageId>{StageId(0), StageId(1)}));
}

TEST_CASE("a row without a task has no list in the plan: ranks are numbered without it",
          "[compiler][lower]") {
  const Program program = chain_program(2, 2);
  const Schedule gaps = Schedule::parse(
      ".   .   .   .   .   .  \n"
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   .   .   .   .   .  \n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  CHECK(to_string(plan_of(program, gaps)) == to_string(plan_of(program, two_by_two())));
}

TEST_CASE("a forward-only plan keeps no state and does not vote", "[compiler][lower]") {
  const Plan plan = plan_of(chain_program(2, 2), two_by_two(), false);
  CHECK(count(plan, Op::Run) == 4);
  CHECK(count(plan, Op::Send) == 2);
  CHECK(count(plan, Op::Vote) == 0);
  CHECK(count(plan, Op::Update) == 0);
  for (const RankList& list : plan.lists) {
    for (const Instruction& i : list.instructions) {
      for (const SlotUse& use : i.writes) {
        CHECK(use.value.role == Role::Activation);
      }
    }
  }
}

TEST_CASE("1F1B keeps as many states alive as its bound says", "[compiler][lower][memory]") {
  const Program program = chain_program(4, 8);
  const Plan plan = plan_of(program, one_f_one_b(program.stage_graph(), 8));
  for (const RankPlan& rank : plan.ranks) {
    int alive = 0, peak = 0;
    for (const Instruction& i : plan.list_of(rank.rank).instructions) {
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

TEST_CASE("a task's sends are issued before the next task, also to several stages",
          "[compiler][lower]") {
  const Schedule skip = Schedule::parse(
      "@form list\n@edges 0-1,0-2,1-2\n"
      "0F0 0F1 0B0 0B1\n"
      "1F0 1F1 1B0 1B1\n"
      "2F0 2B0 2F1 2B1\n");
  torch::manual_seed(2);
  testing::SkipNet module;
  const Program program = compile(module,
                                  {.inputs = {torch::randn({4, 6})},
                                   .labels = {torch::randn({4, 3})},
                                   .loss = testing::mean_square,
                                   .microbatches = 2});
  const Plan plan = plan_of(program, skip);
  for (const RankList& list : plan.lists) {
    Task ran;
    for (const Instruction& i : list.instructions) {
      ran = i.op == Op::Run ? i.task : ran;
      CHECK((i.op != Op::Send || i.task == ran));
    }
  }
}

TEST_CASE("P-8: a backward with nothing to do keeps its place, and no tensor goes to it",
          "[compiler][lower][surplus]") {
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
  for (const Instruction& i : plan.list_of(Rank(0)).instructions) {
    if (i.op == Op::Run) {
      tasks.push_back(to_string(i.task) + (i.does_nothing() ? ", nothing" : ""));
    }
  }
  CHECK((tasks == std::vector<std::string>{"0F0", "0F1", "0B0, nothing", "0B1, nothing"}));
  CHECK_THAT(to_string(plan),
             ContainsSubstring("run 0B1, which does nothing") &&
                 ContainsSubstring("instructions (2 do nothing), driver"));
  CHECK(plan_of(program, two_by_two(), false).surplus_count() == 0);
}

TEST_CASE("tasks of an overlap group share no slot, so they may run in any order",
          "[compiler][lower]") {
  const Plan plan = plan_of(chain_program(4, 4), dualpipev(2, 4));
  int groups = 0;
  for (const RankList& list : plan.lists) {
    std::map<int, std::set<SlotId>> written;
    for (const Instruction& i : list.instructions) {
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

// ---- copies and ranks in a row ------------------------------------------------------------------

/// Returns the operations of a list that start, end or follow sums.
std::vector<Op> end_of(const RankList& list) {
  std::vector<Op> end;
  for (const Instruction& i : list.instructions) {
    if (is_collective(i.op) || i.op == Op::Vote) {
      end.push_back(i.op);
    }
  }
  return end;
}

TEST_CASE("with two copies every rank sums its stages before it votes",
          "[compiler][lower][copies]") {
  const Plan plan = testing::chimera_plan();
  CHECK(verify(plan).empty());
  REQUIRE(plan.tables.groups.size() == 2);
  CHECK((plan.tables.groups[0].sets == std::vector<std::vector<Rank>>{{Rank(0), Rank(1)}}));
  CHECK(plan.feeds.size() == 2 * 4);  // each microbatch's input and label go to one copy
  for (const RankList& list : plan.lists) {
    CHECK(
        (end_of(list) == std::vector<Op>{Op::Start, Op::Start, Op::Finish, Op::Finish, Op::Vote}));
  }
}

TEST_CASE("two copies of a stage on one rank need no other rank", "[compiler][lower][copies]") {
  const Schedule both = Schedule::parse(
      "@form list\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 2F0 2B0 0B0\n"
      "1F0 3F0 3B0 1B0\n");
  const Plan plan = plan_of(chain_program(2, 2), both);
  CHECK(verify(plan).empty());
  CHECK((plan.tables.groups[1].sets == std::vector<std::vector<Rank>>{{Rank(1)}}));
}

TEST_CASE("parts of tied parameters are summed behind the sums over copies",
          "[compiler][lower][ties]") {
  const Plan plan = plan_of(testing::tied_program(2, 4), chimera(2, 4));
  CHECK(verify(plan).empty());
  const std::vector<PlanGroup>& groups = plan.tables.groups;
  REQUIRE(groups.size() == 4);
  CHECK(groups[1].kind == PlanGroup::Kind::Copies);
  CHECK(groups[2].kind == PlanGroup::Kind::Tie);
  CHECK((groups[2].stages == std::vector<StageId>{StageId(0), StageId(1)}));
  CHECK((groups[2].sets == std::vector<std::vector<Rank>>{{Rank(0), Rank(1)}}));
  CHECK((groups[3].sets == std::vector<std::vector<Rank>>{{Rank(1), Rank(0)}}));
  CHECK((groups[3].members(Rank(0)) == groups[2].members(Rank(1))));
  CHECK(groups[2].parameters.size() == 4);  // the frozen one has no gradient
  CHECK_THAT(to_string(plan),
             ContainsSubstring("group 3: matrix, seen, block.weight, block.bias of stages ") &&
                 ContainsSubstring("start all-reduce of group 1") &&
                 ContainsSubstring("start all-gather of group 3"));
  const Plan forward = plan_of(testing::tied_program(2, 4), chimera(2, 4), false);
  CHECK(forward.tables.groups.empty());
  CHECK(count(forward, Op::Start) == 0);
}

TEST_CASE("LA-3: a row of two ranks is one list, with other samples and other peers",
          "[compiler][lower][place]") {
  const Schedule schedule = Schedule::parse(
      "@place 0=0,2 1=1,3\n"
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  const Plan plan = plan_of(chain_program(2, 4), schedule);
  CHECK(verify(plan).empty());
  REQUIRE(plan.lists.size() == 2);
  REQUIRE(plan.ranks.size() == 4);
  CHECK(plan.tables.microbatches == 4);
  CHECK(plan.ranks[2].list == plan.ranks[0].list);
  CHECK(plan.ranks[2].first_microbatch == 2);
  CHECK((plan.ranks[2].peers == std::vector<Rank>{kDriver, Rank(3)}));
  CHECK((plan.ranks[1].peers == std::vector<Rank>{kDriver, Rank(0)}));
  CHECK(plan.feeds.size() == 2 * 4);
  REQUIRE(plan.tables.groups.size() == 2);
  CHECK((plan.tables.groups[1].sets == std::vector<std::vector<Rank>>{{Rank(1), Rank(3)}}));
  for (const RankList& list : plan.lists) {
    CHECK((end_of(list) == std::vector<Op>{Op::Start, Op::Finish, Op::Vote}));
  }
  // The lists themselves are those of one pipeline, but for the sums.
  const Plan single = plan_of(chain_program(2, 2), two_by_two());
  CHECK(plan.lists[0].instructions.size() == single.lists[0].instructions.size() + 2);
}

TEST_CASE("EM-2: a stage with fewer ranks does each task once per unit of samples",
          "[compiler][lower][place]") {
  const Schedule schedule = Schedule::parse(
      "@place 0=0 1=1,2,3\n"
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  const Plan plan = plan_of(chain_program(2, 6), schedule);
  CHECK(verify(plan).empty());
  REQUIRE(plan.lists.size() == 2);
  CHECK((plan.ranks[0].peers == std::vector<Rank>{kDriver, Rank(1), Rank(2), Rank(3)}));
  CHECK((plan.ranks[3].peers == std::vector<Rank>{kDriver, Rank(0)}));
  CHECK(plan.ranks[3].first_microbatch == 4);
  std::vector<std::string> tasks;
  for (const Instruction& i : plan.lists[0].instructions) {
    if (i.op == Op::Run) {
      tasks.push_back(to_string(i.task));
    }
  }
  CHECK((tasks ==
         std::vector<std::string>{
             "0F0", "0F2", "0F4", "0F1", "0F3", "0F5", "0B0", "0B2", "0B4", "0B1", "0B3", "0B5"}));
  CHECK(count(plan, Op::Run) == 24);
  CHECK(count(plan, Op::Send) == 12);
  REQUIRE(plan.tables.groups.size() == 1);  // the one rank of stage 0 sums nothing
  CHECK(
      (plan.tables.groups[0].sets == std::vector<std::vector<Rank>>{{Rank(1), Rank(2), Rank(3)}}));
}

// ---- gathers of shared weights ------------------------------------------------------------------

/// Two stages of three layers.
struct Layers : torch::nn::Module {
  static constexpr std::int64_t kBucket = 300;  // bytes: one layer

  Layers() {
    for (int l = 0; l < 6; ++l) {
      layers.push_back(register_module("layer" + std::to_string(l), torch::nn::Linear(8, 8)));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t s = 0; s < 2; ++s) {
      x = stage("s" + std::to_string(s), [&] {
        for (std::size_t l = 3 * s; l < 3 * s + 3; ++l) {
          x = torch::tanh(layers[l](x));
        }
        return x;
      });
    }
    return x;
  }
  std::vector<torch::nn::Linear> layers;
};

/// Two copies of these stages share weights.
struct SharedLayers {
  explicit SharedLayers(const std::string& builder, std::int64_t bucket_bytes = Layers::kBucket)
      : schedule(in_copies(build_schedule(builder, {.devices = 2, .microbatches = 4}), 2)),
        layout(Layout::of(schedule)),
        strategy(strategy_of(
            schedule, layout, {.bucket_bytes = bucket_bytes, .shard_parameters = true})) {
    Layers module;
    const auto x = torch::randn({16, 8});
    program = in_chunks(
        compile(module,
                {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = 8}),
        strategy,
        layout);
  }
  [[nodiscard]] Plan plan() const {
    return lower(*program, strategy, layout, /*training=*/true).plan;
  }

  Schedule schedule;
  Layout layout;
  Strategy strategy;
  std::optional<Program> program;
};

TEST_CASE("no chunk hands on a view of a weight, if the bias of the layer before would fit too",
          "[compiler][lower][shards]") {
  constexpr std::int64_t kBias = 8 * 4;
  const SharedLayers shared("1f1b", Layers::kBucket + kBias);
  for (const StageProgram& stage : shared.program->compiled().partition.stages) {
    CHECK(stage.chunks.size() == 3);
    for (const Chunk& chunk : stage.chunks) {
      for (const ValueId output : chunk.outputs) {
        for (const StageParameter& parameter : stage.parameters) {
          CAPTURE(stage.name, parameter.name);
          CHECK(stage.at(output).alias_set != stage.at(parameter.value).alias_set);
        }
      }
    }
  }
}

/// Returns, by position, which instructions of a list are over before each one begins, however far
/// its streams drift apart (P-2).
std::vector<std::set<std::size_t>> earlier_ones(const RankList& list) {
  std::vector<std::set<std::size_t>> before(list.instructions.size());
  std::map<StreamId, std::size_t> last;
  std::map<InstructionId, std::size_t> position;
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    const auto add = [&](std::size_t other) {
      before[i].insert(other);
      before[i].insert(before[other].begin(), before[other].end());
    };
    const Instruction& one = list.instructions[i];
    for (const InstructionId wait : one.waits) {
      add(position.at(wait));
    }
    if (const auto found = last.find(one.stream); found != last.end()) {
      add(found->second);
    }
    last[one.stream] = position[one.id] = i;
  }
  return before;
}

/// The gather of a bucket's weights, and the tasks that use them: positions in the list.
struct Gathered {
  std::size_t start = 0, finish = 0;
  std::vector<std::size_t> tasks = {};
};

/// Returns the gathers in the order of their first tasks.
std::vector<Gathered> gathers_of(const PlanTables& tables, const RankList& list) {
  std::vector<Gathered> all;
  std::map<std::int32_t, std::size_t> gather_of;  // by group that has its weights
  for (std::size_t i = 0; i < list.instructions.size(); ++i) {
    const Instruction& one = list.instructions[i];
    if (one.op == Op::Start && gathers_weights(tables, one)) {
      gather_of[one.group] = all.size();
      all.push_back({.start = i});
    } else if (one.op == Op::Finish && gathers_weights(tables, one)) {
      all[gather_of.at(one.group)].finish = i;
    } else if (one.op == Op::Release) {
      gather_of.erase(one.group);
    } else if (one.op == Op::Run) {
      for (const auto& [group, gather] : gather_of) {
        const PlanBucket& bucket = tables.buckets[static_cast<std::size_t>(
            tables.groups[static_cast<std::size_t>(group)].bucket)];
        if (bucket.stages.front() == one.task.stage && bucket.chunks.has(one.chunks.first)) {
          all[gather].tasks.push_back(i);
        }
      }
    }
  }
  return all;
}

TEST_CASE("the weights of the next task are gathered beside the one that runs, and no others",
          "[compiler][lower][shards]") {
  const std::string builder = GENERATE("1f1b", "gpipe");
  const Plan plan = SharedLayers(builder).plan();
  REQUIRE(plan.lists.size() == 2);
  for (const RankList& list : plan.lists) {
    const std::vector<std::set<std::size_t>> before = earlier_ones(list);
    const std::vector<Gathered> gathers = gathers_of(plan.tables, list);
    CAPTURE(builder, list.stages.front().value, gathers.size());
    if (builder == "1f1b") {  // 2 M K, less a pair of forward and backward that follow each other
      CHECK(gathers.size() == (list.stages.front() == StageId(0) ? 24 - 5 : 24 - 7));
    }
    for (std::size_t g = 0; g < gathers.size(); ++g) {
      const auto& [start, finish, tasks] = gathers[g];
      CAPTURE(g, start);
      REQUIRE(!tasks.empty());
      CHECK(list.streams[list.instructions[start].stream.index()] == "gather");
      for (const std::size_t task : tasks) {
        CHECK(before[task].contains(start));
      }
      if (g == 0) {
        continue;
      }
      // It is issued when the weights of the last task but one are not used any more, lasts while
      // the last task runs, and does not wait for it.
      const std::size_t running = gathers[g - 1].tasks.back();
      CHECK((g == 1 || gathers[g - 2].tasks.back() < start));
      CHECK(start < running);
      CHECK_FALSE(before[start].contains(running));
      CHECK(running < finish);
      CHECK(finish < tasks.front());
    }
  }
}

}  // namespace
}  // namespace stagecraft
