#include "stagecraft/scheduler/replicas.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/dualpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/formats/json.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a schedule of one pipeline is its own only replica", "[scheduler][replicas]") {
  const Schedule schedule = one_f_one_b(4, 8);
  const Replicas replicas(schedule);
  CHECK(replicas.count() == 1);
  CHECK(replicas.model_stages() == 4);
  CHECK(replicas.model_stage(StageId(3)) == StageId(3));
  CHECK(replicas.with_step_microbatches(schedule) == schedule);
}

TEST_CASE("DualPipe's second half are copies of its first", "[scheduler][replicas]") {
  const Schedule schedule = dualpipe(4, 8);
  const Replicas replicas(schedule);
  REQUIRE(replicas.count() == 2);
  CHECK(replicas.model_stages() == 4);
  for (int s = 0; s < 4; ++s) {
    const StageId copy = replicas.stage(StageId(s), 1);
    CHECK(replicas.model_stage(copy) == StageId(s));
    CHECK(replicas.replica(copy) == 1);
    CHECK(replicas.replica(StageId(s)) == 0);
  }
}

TEST_CASE("the step's microbatches are each seen by one replica", "[scheduler][replicas]") {
  const Schedule schedule = dualpipe(4, 8);
  const Replicas replicas(schedule);
  std::vector<std::vector<int>> seen(8);  // by stage, in order
  const Schedule renumbered = replicas.with_step_microbatches(schedule);
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
    const int first = replicas.replica(StageId(s)) * 4;
    CHECK(seen[s] == std::vector<int>{first, first + 1, first + 2, first + 3});
  }
}

TEST_CASE("a model's graph is laid out once per replica", "[scheduler][replicas]") {
  StageGraph model = StageGraph::chain(4);
  model.set_needs_input_grad(StageId(2), false);
  const Schedule schedule = dualpipe(4, 8);
  const StageGraph graph = Replicas(schedule).expand(model);
  REQUIRE(graph.size() == 8);
  CHECK(graph.replicas() == 2);
  const StageId copy = Replicas(schedule).stage(StageId(2), 1);
  CHECK_FALSE(graph.needs_input_grad(StageId(2)));
  CHECK_FALSE(graph.needs_input_grad(copy));
  CHECK(graph.needs_input_grad(StageId(1)));
  CHECK(validate(schedule, Replicas(schedule).expand(StageGraph::chain(4))).empty());
}

// Three copies of a pipeline of two stages, the first of them the last numbered.
constexpr const char* kThree =
    "@form list\n"
    "@microbatches 6\n"
    "@edges 0-1,2-3,4-5\n"
    "@replicas 3=1,2=0,4=2,5=3\n"
    "4F0 4F1 3F0 3B0 3F1 3B1 4B0 4B1\n"
    "2F0 2F1 1F0 1I0 1F1 1B1 1W0 2B0 2B1\n"
    "0F0 0F1 5F0 5B0 5F1 5B1 0B0 0B1\n";

TEST_CASE("three copies of a pipeline, however they are numbered", "[scheduler][replicas]") {
  const Schedule text = Schedule::parse(kThree);
  for (const Schedule& schedule :
       {text, Schedule::parse(to_string(text)), parse_json(to_json(text))}) {
    const Replicas replicas(schedule);
    REQUIRE(replicas.count() == 3);
    CHECK(replicas.model_stages() == 2);
    for (int replica = 0; replica < 3; ++replica) {
      CHECK(replicas.stage(StageId(0), replica) == StageId(4 - 2 * replica));
      CHECK(replicas.stage(StageId(1), replica) == StageId(5 - 2 * replica));
    }
    const StageGraph graph = replicas.expand(StageGraph::chain(2));
    CHECK(graph.replicas() == 3);
    CHECK(graph.edges() == std::vector<StageGraph::Edge>{{0, 1}, {2, 3}, {4, 5}});
    CHECK(graph.replica_of(StageId(0)) == 2);
    CHECK(validate(schedule, graph).empty());
    CHECK(validate(schedule.to_array(graph), graph).empty());
    CHECK(simulate(schedule, graph).makespan == 12);
    const Schedule renumbered = replicas.with_step_microbatches(schedule);
    CHECK(to_string(renumbered.rows()[0][0]) == "4F0");
    CHECK(to_string(renumbered.rows()[1][3]) == "1I4");
    CHECK(to_string(renumbered.rows()[2][7]) == "0B5");
  }
}

TEST_CASE("microbatches of three copies are counted over all of them", "[scheduler][replicas]") {
  const Schedule schedule = Schedule::parse(kThree);
  const StageGraph graph = schedule.stage_graph();
  CHECK(schedule.microbatches() == 6);
  CHECK(validate(schedule, graph, {.microbatches = 9}).size() == 2);  // V09 and V10: each has three
  CHECK(validate(schedule, graph, {.microbatches = 3}).front().rule == "V05");
}

TEST_CASE("a model with another number of stages cannot be replicated", "[scheduler][replicas]") {
  const Replicas replicas(dualpipe(4, 8));
  CHECK_THROWS_WITH((void)replicas.expand(StageGraph::chain(3)),
                    ContainsSubstring("2 replicas of 4 stages, the model has 3"));
}

TEST_CASE("what a model's stages train is the same of all their copies",
          "[scheduler][replicas][surplus]") {
  const Replicas replicas(Schedule::parse(kThree));
  StageGraph model = StageGraph::chain(2);
  const auto is_work = [&](int stage) {  // the input half of stage `stage`
    return !replicas.expand(model).is_surplus(
        {CellKind::BackwardInput, StageId(stage), Microbatch(0)});
  };
  CHECK(is_work(0));  // nobody has said what the model's inputs need
  model.set_needs_input_grad(StageId(0), false);
  for (const int stage : {0, 2, 4}) {
    CHECK_FALSE(is_work(stage));
  }
  model.freeze({0});
  CHECK(replicas.expand(model).frozen() == std::vector<int>{0, 2, 4});
}

TEST_CASE("replica pairs that leave a stage out are refused", "[scheduler][replicas]") {
  const Schedule schedule = Schedule::parse(
      "@stages 4\n@edges 0-1,2-3\n@replicas 0=2\n0F0 1F0 1B0 0B0\n2F0 3F0 3B0 2B0\n");
  CHECK_THROWS_WITH(Replicas(schedule), ContainsSubstring("has no copy in replica 1"));
  const Schedule third =
      Schedule::parse("@stages 5\n@edges 0-1,2-3\n@replicas 0=2,1=3,2=4\n0F0 1F0\n2F0 3F0\n4F0\n");
  CHECK_THROWS_WITH(Replicas(third), ContainsSubstring("has no copy in replica 2"));
}

}  // namespace
}  // namespace stagecraft
