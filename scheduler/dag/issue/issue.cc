#include "stagecraft/scheduler/dag/issue/issue.h"

#include <algorithm>
#include <utility>

#include "stagecraft/scheduler/dag/issue/communication_order.h"
#include "stagecraft/scheduler/dag/issue/dispatch.h"
#include "stagecraft/scheduler/dag/issue/elide.h"

namespace stagecraft {
namespace {

/// Returns whether collectives serve single tasks, so that some may be needless.
bool shards_by_task(const TrainingDag& dag) {
  return std::ranges::any_of(dag.nodes, [](const DagNode& node) {
    return is_collective(node.kind) && node.microbatch != Microbatch(kNone);
  });
}

}  // namespace

IssuedDag issue(TrainingDag dag) {
  IssuedDag issued{.dag = std::move(dag), .streams = {}, .lists = {}};
  if (shards_by_task(issued.dag)) {
    elide(issued.dag);
  }
  issued.streams = order_streams(issued.dag);
  delay_receives(issued.dag, issued.streams);
  order_communication(issued.dag);
  issued.lists = dispatch_order(issued.dag);
  return issued;
}

}  // namespace stagecraft
