#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"

#include <algorithm>

#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

double longest_idle(const Timeline& timeline) {
  double worst = 0;
  for (const RowTimeline& row : timeline.rows) {
    worst = std::max(worst, row.idle);
  }
  return worst;
}

TEST_CASE("overlap groups shorter than their members shorten both DualPipes",
          "[scheduler][builders]") {
  for (const Schedule& schedule : {dualpipe(8, 16), dualpipev(4, 8)}) {
    const StageGraph graph = schedule.stage_graph();
    const Timeline some = simulate(schedule, graph, {.stages = {.group = 2.5}});
    CHECK(some.makespan == 49);
    CHECK(longest_idle(some) == 4.5);
    const Timeline most = simulate(schedule, graph, {.stages = {.group = 2.0}});
    CHECK(most.makespan == 44);
    CHECK(longest_idle(most) == 3);
  }
}

TEST_CASE("replicas count their own microbatches", "[scheduler][builders]") {
  const Schedule both_ways = dualpipe(4, 8);
  CHECK(both_ways.stages() == 8);
  CHECK(both_ways.microbatches() == 8);
  CHECK(both_ways.stage_graph().replicas() == 2);
  CHECK(chimera(4, 8).microbatches() == 8);
}

}  // namespace
}  // namespace stagecraft
