#include "stagecraft/scheduler/model/surplus.h"

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a schedule for a model that trains all has no surplus", "[scheduler][surplus]") {
  const Schedule schedule = zb_h1(4, 8);
  CHECK(find_surplus(schedule, schedule.stage_graph()).empty());
}

TEST_CASE("tasks that do nothing are counted by stage and kind, and told with their reason",
          "[scheduler][surplus]") {
  StageGraph graph = StageGraph::chain(5);
  graph.freeze({0, 1, 3});
  const Schedule schedule = zb_h1(5, 8);
  const std::vector<Surplus> surplus = find_surplus(schedule, graph);
  CHECK(surplus == std::vector<Surplus>{{StageId(0), CellKind::BackwardInput, 8},
                                        {StageId(0), CellKind::BackwardWeight, 8},
                                        {StageId(1), CellKind::BackwardInput, 8},
                                        {StageId(1), CellKind::BackwardWeight, 8},
                                        {StageId(2), CellKind::BackwardInput, 8},
                                        {StageId(3), CellKind::BackwardWeight, 8}});
  CHECK(to_string(surplus, graph) ==
        "48 tasks do nothing: 8 I of stage 2 (inputs need no gradient), 16 I of stages 0, 1 (no "
        "backward), 16 W of stages 0, 1 (no backward), 8 W of stage 3 (no weights to train)");
}

TEST_CASE("one task does nothing, several do nothing", "[scheduler][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0});
  CHECK(to_string(find_surplus(one_f_one_b(2, 1), graph), graph) ==
        "1 task does nothing: 1 B of stage 0 (no backward)");
}

}  // namespace
}  // namespace stagecraft
