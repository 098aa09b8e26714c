#include "stagecraft/scheduler/dag/transfer_order.h"

#include <map>
#include <utility>

namespace stagecraft {

std::vector<int> order_transfers(TrainingDag& dag) {
  const std::vector<int> order = topological_order(dag, DagAdjacency(dag));
  std::map<std::pair<int, int>, int> last;  // send, by places of sender and receiver
  for (const int send : order) {
    const DagNode node = dag.node(send);
    if (node.kind != DagKind::Send) {
      continue;
    }
    const auto [before, first] = last.try_emplace({node.place, dag.node(node.peer).place}, send);
    if (!first) {
      dag.connect(before->second, send, /*data=*/false);
      dag.connect(dag.node(before->second).peer, node.peer, /*data=*/false);
      before->second = send;
    }
  }
  return find_cycle(dag);
}

}  // namespace stagecraft
