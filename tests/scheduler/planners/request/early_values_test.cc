#include "stagecraft/scheduler/planners/request/early_values.h"

#include <utility>

#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns costs of two stages, the second four times as slow, with 10 bytes between them.
Costs slow_second() {
  Costs costs;
  costs.stages.each = {{.forward = 1, .backward = 1}, {.forward = 4, .backward = 4}};
  costs.stages.memory.fixed = {100, 100};
  costs.links.edge_bytes[{0, 1}] = 10;
  return costs;
}

std::vector<double> peaks(const Schedule& schedule, const Costs& costs) {
  const StageGraph graph = StageGraph::chain(2);
  std::vector<double> all;
  for (const RowPeak& peak :
       peaks_with_early_values(simulate(schedule, graph, costs), schedule, graph, costs.links)) {
    CHECK(peak.own <= peak.all);
    all.push_back(peak.all);
  }
  return all;
}

TEST_CASE("values that come before they are taken are held", "[scheduler][planners]") {
  // The forwards of stage 0 end at 1, 2, 3 and 4; stage 1 takes the first value at once, the next
  // at 5.
  CHECK(peaks(gpipe(2, 4), slow_second()) == std::vector<double>{100, 130});
  // 1F1B lets stage 0 run two microbatches ahead.
  CHECK(peaks(one_f_one_b(2, 4), slow_second()) == std::vector<double>{100, 110});
}

TEST_CASE("gradients that come early are held by the stage before", "[scheduler][planners]") {
  Costs costs = slow_second();
  std::swap(costs.stages.each[0], costs.stages.each[1]);
  // Stage 1 ends 1B0 before stage 0 has run 0F1, which comes first.
  const Schedule schedule = Schedule::parse("@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1");
  CHECK(peaks(schedule, costs) == std::vector<double>{110, 100});
}

TEST_CASE("what stages keep meanwhile counts with what waits", "[scheduler][planners]") {
  Costs costs = slow_second();
  costs.stages.memory.activations = {0, 7};
  costs.stages.memory.transient = {0, 3};
  // While stage 1 runs 1F0, it keeps one microbatch, and three values wait.
  CHECK(peaks(gpipe(2, 4), costs)[1] == 100 + 7 + 3 + 3 * 10);
}

TEST_CASE("gradients that stay on their row are held until another stage takes them",
          "[scheduler][planners]") {
  // Stage 2 feeds on stages 0 and 1, and lies on the row of stage 0, which goes back last.
  const StageGraph graph = StageGraph::from_edges(3, {{0, 1}, {0, 2}, {1, 2}});
  Costs costs;
  costs.stages.each.assign(3, {.forward = 1, .backward = 1});
  costs.stages.memory.fixed = {100, 100, 0};
  costs.links.edge_bytes = {{{0, 1}, 1}, {{0, 2}, 10}, {{1, 2}, 1}};
  const Schedule schedule = Schedule::parse(
      "@form list\n@stages 3\n@edges 0-1,0-2,1-2\n"
      "0F0 0F1 2F0 2B0 2F1 2B1 0B0 0B1\n1F0 1F1 1B0 1B1");
  const auto found =
      peaks_with_early_values(simulate(schedule, graph, costs), schedule, graph, costs.links);
  // The gradient of 2B0 waits until 0B0 begins, and that of 2B1 while 0B0 runs.
  CHECK(found[0].own == 100 + 10);
  CHECK(found[1].own == 100);
}

}  // namespace
}  // namespace stagecraft
