#include "stagecraft/scheduler/dag/issue/dispatch.h"

#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/stream_order.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("nodes of one level are issued by what they hold up", "[scheduler][dag]") {
  TrainingDag dag;
  dag.source = bare_source(StageGraph::chain(2));
  dag.places = {{Rank(0)}, {Rank(1)}};
  const int compute = dag.add({.kind = DagKind::Forward, .stage = StageId(0), .place = 0});
  const int sum = dag.add({.kind = DagKind::AllReduce, .stage = StageId(0), .place = 0});
  const int gather = dag.add({.kind = DagKind::AllGather, .stage = StageId(0), .place = 0});
  const int send = dag.add({.kind = DagKind::Send, .stage = StageId(0), .place = 0});
  const int far_receive =
      dag.add({.kind = DagKind::Receive, .stage = StageId(1), .place = 1, .peer = send});
  dag.node(send).peer = far_receive;
  const int far_send = dag.add({.kind = DagKind::Send, .stage = StageId(1), .place = 1});
  const int receive =
      dag.add({.kind = DagKind::Receive, .stage = StageId(0), .place = 0, .peer = far_send});
  dag.node(far_send).peer = receive;
  CHECK(dispatch_order(dag).front() == std::vector{send, gather, sum, compute, receive});
}

TEST_CASE("a rank issues sends at once and receives just before they are needed",
          "[scheduler][dag]") {
  const Schedule schedule = build_schedule("1f1b", {.devices = 3, .microbatches = 4});
  TrainingDag dag =
      apply(strategy_of(schedule, Layout::of(schedule)), bare_source(schedule.stage_graph()));
  const std::vector<StreamOrder> orders = order_streams(dag);
  delay_receives(dag, orders);
  for (const std::vector<int>& list : dispatch_order(dag)) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const DagNode& node = dag.node(list[i]);
      if (node.kind == DagKind::Send) {
        REQUIRE(i > 0);
        const DagNode& before = dag.node(list[i - 1]);
        CHECK((before.kind == DagKind::Send || before.microbatch == node.microbatch));
      }
      if (node.kind == DagKind::Receive) {
        REQUIRE(i + 1 < list.size());
        const DagNode& next = dag.node(list[i + 1]);
        CHECK((computes(next.kind) && next.microbatch == node.microbatch));
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
