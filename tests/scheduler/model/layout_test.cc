#include "stagecraft/scheduler/model/layout.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/formats/json/json.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<Rank> ranks_of(const Layout& layout, int row) {
  const auto ranks = layout.ranks_of(row);
  return {ranks.begin(), ranks.end()};
}

TEST_CASE("a schedule of one pipeline is its own only replica", "[scheduler][layout]") {
  const Schedule schedule = one_f_one_b(4, 8);
  const Layout layout = Layout::of(schedule);
  CHECK(layout.replicas() == 1);
  CHECK(layout.model_stages() == 4);
  CHECK(layout.model_stage(StageId(3)) == StageId(3));
  CHECK(layout.with_step_microbatches(schedule) == schedule);
}

TEST_CASE("DualPipe's second half are copies of its first", "[scheduler][layout]") {
  const Schedule schedule = dualpipe(4, 8);
  const Layout layout = Layout::of(schedule);
  REQUIRE(layout.replicas() == 2);
  CHECK(layout.model_stages() == 4);
  for (int s = 0; s < 4; ++s) {
    const StageId copy = layout.stage(StageId(s), 1);
    CHECK(layout.model_stage(copy) == StageId(s));
    CHECK(layout.replica(copy) == 1);
    CHECK(layout.replica(StageId(s)) == 0);
  }
}

TEST_CASE("the step's microbatches are each seen by one replica", "[scheduler][layout]") {
  const Schedule schedule = dualpipe(4, 8);
  const Layout layout = Layout::of(schedule);
  std::vector<std::vector<int>> seen(8);  // by stage, in order
  const Schedule renumbered = layout.with_step_microbatches(schedule);
  for (const auto& row : renumbered.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (task.kind == CellKind::Forward) {
          seen[task.stage.index()].push_back(task.microbatch.value);
        }
      }
    }
  }
  for (std::size_t s = 0; s < 8; ++s) {
    const int first = layout.replica(StageId(s)) * 4;
    CHECK(seen[s] == std::vector<int>{first, first + 1, first + 2, first + 3});
  }
}

TEST_CASE("a model's graph is laid out once per replica", "[scheduler][layout]") {
  StageGraph model = StageGraph::chain(4);
  model.set_needs_input_grad(StageId(2), false);
  const Schedule schedule = dualpipe(4, 8);
  const StageGraph graph = Layout::of(schedule).expand(model);
  REQUIRE(graph.size() == 8);
  CHECK(graph.replicas() == 2);
  const StageId copy = Layout::of(schedule).stage(StageId(2), 1);
  CHECK_FALSE(graph.needs_input_grad(StageId(2)));
  CHECK_FALSE(graph.needs_input_grad(copy));
  CHECK(graph.needs_input_grad(StageId(1)));
  CHECK(validate(schedule, Layout::of(schedule).expand(StageGraph::chain(4))).empty());
}

// Three copies of a pipeline of two stages. The first copy has the last numbers.
constexpr const char* kThree =
    "@form list\n"
    "@microbatches 6\n"
    "@edges 0-1,2-3,4-5\n"
    "@replicas 3=1,2=0,4=2,5=3\n"
    "4F0 4F1 3F0 3B0 3F1 3B1 4B0 4B1\n"
    "2F0 2F1 1F0 1I0 1F1 1B1 1W0 2B0 2B1\n"
    "0F0 0F1 5F0 5B0 5F1 5B1 0B0 0B1\n";

TEST_CASE("three copies of a pipeline, however they are numbered", "[scheduler][layout]") {
  const Schedule text = Schedule::parse(kThree);
  for (const Schedule& schedule :
       {text, Schedule::parse(to_string(text)), parse_json(to_json(text))}) {
    const Layout layout = Layout::of(schedule);
    REQUIRE(layout.replicas() == 3);
    CHECK(layout.model_stages() == 2);
    for (int replica = 0; replica < 3; ++replica) {
      CHECK(layout.stage(StageId(0), replica) == StageId(4 - 2 * replica));
      CHECK(layout.stage(StageId(1), replica) == StageId(5 - 2 * replica));
    }
    const StageGraph graph = layout.expand(StageGraph::chain(2));
    CHECK(graph.replicas() == 3);
    CHECK(graph.edges() == std::vector<StageGraph::Edge>{{0, 1}, {2, 3}, {4, 5}});
    CHECK(graph.replica_of(StageId(0)) == 2);
    CHECK(validate(schedule, graph).empty());
    CHECK(validate(to_array(schedule, graph), graph).empty());
    CHECK(simulate(schedule, graph).makespan == 12);
    const Schedule renumbered = layout.with_step_microbatches(schedule);
    CHECK(to_string(renumbered.rows()[0][0]) == "4F0");
    CHECK(to_string(renumbered.rows()[1][3]) == "1I4");
    CHECK(to_string(renumbered.rows()[2][7]) == "0B5");
  }
}

TEST_CASE("microbatches of three copies are counted over all of them", "[scheduler][layout]") {
  const Schedule schedule = Schedule::parse(kThree);
  const StageGraph graph = schedule.stage_graph();
  CHECK(schedule.microbatches() == 6);
  CHECK(validate(schedule, graph, {.microbatches = 9}).size() == 2);  // V09 and V10: each has three
  CHECK(validate(schedule, graph, {.microbatches = 3}).front().rule == "V05");
}

TEST_CASE("a model with another number of stages cannot be replicated", "[scheduler][layout]") {
  const Layout layout = Layout::of(dualpipe(4, 8));
  CHECK_THROWS_WITH((void)layout.expand(StageGraph::chain(3)),
                    ContainsSubstring("2 replicas of 4 stages, but the model has 3"));
}

TEST_CASE("what a model's stages train is the same of all their copies",
          "[scheduler][layout][surplus]") {
  const Layout layout = Layout::of(Schedule::parse(kThree));
  StageGraph model = StageGraph::chain(2);
  const auto is_work = [&](int stage) {  // the input half of stage `stage`
    return !layout.expand(model).is_surplus(
        {CellKind::BackwardInput, StageId(stage), Microbatch(0)});
  };
  CHECK(is_work(0));  // the needs of the model's inputs are unknown
  model.set_needs_input_grad(StageId(0), false);
  for (const int stage : {0, 2, 4}) {
    CHECK_FALSE(is_work(stage));
  }
  model.freeze({0});
  CHECK(layout.expand(model).frozen() == std::vector<int>{0, 2, 4});
}

TEST_CASE("replica pairs that leave a stage out are refused", "[scheduler][layout]") {
  const Schedule schedule = Schedule::parse(
      "@stages 4\n@edges 0-1,2-3\n@replicas 0=2\n0F0 1F0 1B0 0B0\n2F0 3F0 3B0 2B0\n");
  CHECK_THROWS_WITH((void)Layout::of(schedule), ContainsSubstring("has no copy in replica 1"));
  const Schedule third =
      Schedule::parse("@stages 5\n@edges 0-1,2-3\n@replicas 0=2,1=3,2=4\n0F0 1F0\n2F0 3F0\n4F0\n");
  CHECK_THROWS_WITH((void)Layout::of(third), ContainsSubstring("has no copy in replica 2"));
}

TEST_CASE("LA-2: every row with a task has a rank of its own, in the order of the rows",
          "[scheduler][layout]") {
  const Layout layout = Layout::of(Schedule::parse("0F0 3F0\n1F0 2F0"));
  REQUIRE(layout.rows() == 2);
  REQUIRE(layout.ranks() == 2);
  for (int row = 0; row < 2; ++row) {
    CHECK(ranks_of(layout, row) == std::vector{Rank(row)});
    CHECK(layout.row_of(Rank(row)) == row);
  }
  CHECK(layout.stages_of(Rank(0)) == std::vector{StageId(0), StageId(3)});
  CHECK(layout.ranks_of(StageId(2)).front() == Rank(1));
}

TEST_CASE("LA-2: a row without a task stands for no rank, and those below it move up",
          "[scheduler][layout]") {
  const char* text =
      GENERATE(". . .\n0F0 . 0B0\n. . .\n. 1F0 1B0\n", "@form list\n.\n0F0 0B0\n.\n1F0 1B0\n");
  const Schedule schedule = Schedule::parse(text);
  REQUIRE(schedule.rows().size() == 4);
  const Layout layout = Layout::of(schedule);
  REQUIRE(layout.rows() == 4);
  REQUIRE(layout.ranks() == 2);
  CHECK(ranks_of(layout, 0).empty());
  CHECK(ranks_of(layout, 1) == std::vector{Rank(0)});
  CHECK(ranks_of(layout, 2).empty());
  CHECK(ranks_of(layout, 3) == std::vector{Rank(1)});
  CHECK(layout.row_of(Rank(0)) == 1);
  CHECK(layout.row_of(Rank(1)) == 3);
  CHECK(layout.stages_of(Rank(1)) == std::vector{StageId(1)});
  CHECK(layout.ranks_of(StageId(1)).front() == Rank(1));
}

TEST_CASE("a schedule that breaks rules has a layout: rules are judged behind it",
          "[scheduler][layout]") {
  const Layout nothing = Layout::of(Schedule::parse(". .\n"));
  CHECK(nothing.ranks() == 0);
  CHECK(nothing.rows() == 1);
  const Layout gap = Layout::of(Schedule::parse("@stages 3\n0F0 2F0\n"));
  CHECK(gap.ranks_of(StageId(1)).empty());
  CHECK(gap.ranks_of(StageId(2)).size() == 1);
  const Layout beyond = Layout::of(Schedule::parse("@stages 1\n0F0\n7F0\n"));
  CHECK(beyond.stages() == 1);
  CHECK(beyond.ranks() == 2);
}

}  // namespace
}  // namespace stagecraft
