#include "stagecraft/scheduler/dag/issue/communication_order.h"

#include <cstddef>
#include <vector>

#include "stagecraft/base/check.h"
#include "stagecraft/scheduler/dag/issue/rendezvous.h"

namespace stagecraft {

void order_communication(TrainingDag& dag) {
  const std::size_t streams = dag.streams.size();
  std::vector<bool> moves(dag.places.size() * streams);  // by place, then stream: has transfers
  const auto queue_of = [&](const DagNode& node) {
    return static_cast<std::size_t>(node.place) * streams + static_cast<std::size_t>(node.stream);
  };
  for (const DagNode& node : dag.nodes) {
    if (is_transfer(node.kind)) {
      moves[queue_of(node)] = true;
    }
  }
  std::vector<int> last(moves.size(), kNone);
  const std::vector<int> order = topological_order(dag, DagAdjacency(dag), Rendezvous(dag));
  SC_CHECK(order.size() == dag.nodes.size(),
           "nodes that order_streams() has put in order can be done in that order");
  for (const int n : order) {
    const std::size_t queue = queue_of(dag.node(n));
    if (!moves[queue]) {
      continue;
    }
    if (last[queue] != kNone) {
      dag.connect(last[queue], n, /*data=*/false);
    }
    last[queue] = n;
  }
}

}  // namespace stagecraft
