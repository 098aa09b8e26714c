#include "stagecraft/scheduler/dag/issue/communication_order.h"

#include <map>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("transfers between two ranks have one order at both ends", "[scheduler][dag]") {
  const Schedule schedule = build_schedule("zb-v", {.devices = 4, .microbatches = 8});
  const IssuedDag issued = issue(
      apply(strategy_of(schedule, Layout::of(schedule)), bare_source(schedule.stage_graph())));
  const TrainingDag& dag = issued.dag;
  std::map<std::pair<int, int>, std::vector<int>> sends, receives;
  for (const std::vector<int>& list : issued.lists) {
    for (const int n : list) {
      const DagNode& node = dag.node(n);
      if (node.kind == DagKind::Send) {
        sends[{node.place, dag.node(node.peer).place}].push_back(n);
      } else if (node.kind == DagKind::Receive) {
        receives[{dag.node(node.peer).place, node.place}].push_back(node.peer);
      }
    }
  }
  CHECK(sends.size() == 6);
  CHECK(sends == receives);
}

TEST_CASE("a sender takes the order that its receiver needs", "[scheduler][dag]") {
  // The sender makes 0F0 first. The receiver's 1F0 waits for its 1F1, which waits for the other.
  const IssuedDag issued =
      issue(apply(Strategy{}
                      .split({}, 2)
                      .place(filters::stage(0), {Rank(0)})
                      .place(filters::stage(1), {Rank(1)})
                      .order({{filters::forward(0, 0)}, {filters::forward(0, 1)}})
                      .order({{filters::forward(1, 1)}, {filters::forward(1, 0)}}),
                  bare_source(StageGraph::chain(2))));
  std::vector<int> sent;
  for (const int n : issued.lists.front()) {
    const DagNode& node = issued.dag.node(n);
    if (node.kind == DagKind::Send) {
      sent.push_back(node.microbatch.value);
    }
  }
  CHECK(sent == std::vector{1, 0});
}

}  // namespace
}  // namespace stagecraft
