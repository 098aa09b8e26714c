#include "stagecraft/scheduler/replicas.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/dualpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
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

TEST_CASE("a model with another number of stages cannot be replicated", "[scheduler][replicas]") {
  const Replicas replicas(dualpipe(4, 8));
  CHECK_THROWS_WITH((void)replicas.expand(StageGraph::chain(3)),
                    ContainsSubstring("2 replicas of 4 stages, the model has 3"));
}

TEST_CASE("replica pairs that leave a stage out are refused", "[scheduler][replicas]") {
  const Schedule schedule = Schedule::parse(
      "@stages 4\n@edges 0-1,2-3\n@replicas 0=2\n0F0 1F0 1B0 0B0\n2F0 3F0 3B0 2B0\n");
  CHECK_THROWS_WITH(Replicas(schedule), ContainsSubstring("has no copy in replica 1"));
}

}  // namespace
}  // namespace stagecraft
