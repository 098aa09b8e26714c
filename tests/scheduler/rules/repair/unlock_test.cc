#include "stagecraft/scheduler/rules/repair/unlock.h"

#include <vector>

#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("several deadlocks are resolved one by one", "[scheduler][repair][deadlock]") {
  // Each of two pipelines in one file has its own deadlock.
  Schedule list = Schedule::parse(
      "@form list\n@edges 0-1,2-3\n"
      "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n"
      "2F0 2B0 2F1 2B1\n3F0 3F1 3B0 3B1\n");
  const StageGraph graph = list.stage_graph();
  std::vector<Violation> found = validate(list, graph);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found.front().repair.has_value());  // one exchange does not resolve both
  const auto first = find_unlocking(list, graph, found.front());
  REQUIRE(first.has_value());
  CHECK(first->row == found.front().row);
  list = apply(list, *first);
  found = validate(list, graph);
  REQUIRE(found.size() == 1);
  const auto second = find_unlocking(list, graph, found.front());
  REQUIRE(second.has_value());
  CHECK(validate(apply(list, *second), graph).empty());
}

TEST_CASE("an exchange lets more cells run than before", "[scheduler][repair][deadlock]") {
  const auto exchange_of = [](const char* text) {
    const Schedule list = Schedule::parse(text);
    const StageGraph graph = list.stage_graph();
    const std::vector<Violation> found = validate(list, graph);
    REQUIRE(found.front().rule == "V29");
    const auto exchange = find_unlocking(list, graph, found.front());
    const auto running = [&](const Schedule& schedule) {
      return TaskGraph(schedule.rows(), graph, schedule.microbatches()).walk([](int) {});
    };
    CHECK((!exchange || running(apply(list, *exchange)) > running(list)));
    return exchange;
  };
  CHECK(exchange_of("@form list\n0B0 0F0 0B1 0F1").has_value());
  // Row 1 is on the cycle, and none of its cells can run before row 0 does.
  CHECK_FALSE(exchange_of("@form list\n0B0 0F0 0B1 0F1\n1B0 1F0 1B1 1F1").has_value());
}

TEST_CASE("a deadlock without two cells of one row has no exchange",
          "[scheduler][repair][deadlock]") {
  const Schedule list = Schedule::parse("@form list\n0F0|0B0");
  const StageGraph graph = list.stage_graph();
  CHECK_FALSE(find_unlocking(list, graph, {.rule = "V29", .cells = {{0, 0}}}).has_value());
}

}  // namespace
}  // namespace stagecraft
