#include "stagecraft/scheduler/dag/issue/issue.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/dag/issue/communication_order.h"
#include "stagecraft/scheduler/dag/issue/dispatch.h"
#include "stagecraft/scheduler/dag/issue/elide.h"
#include "stagecraft/scheduler/dag/issue/rendezvous.h"

namespace stagecraft {
namespace {

/// Returns whether collectives serve single tasks, so that some may be needless.
bool shards_by_task(const TrainingDag& dag) {
  return std::ranges::any_of(dag.nodes, [](const DagNode& node) {
    return is_collective(node.kind) && node.microbatch != Microbatch(kNone);
  });
}

/// Refuses copies in the schedule that share gradients or weights, unless all their rows come to
/// the same rounds: each row makes its own of its order.
void require_common_rounds(const TrainingDag& dag) {
  std::map<Meeting, std::size_t> members;  // of the rounds
  for (int n = 0; n < dag.size(); ++n) {
    if (is_collective(dag.node(n).kind) && dag.node(n).microbatch != Microbatch(kNone)) {
      ++members[meeting_of(dag, n)];
    }
  }
  const auto stages_of = [&](const Meeting& meeting) -> const std::vector<StageId>& {
    return dag.buckets[static_cast<std::size_t>(meeting.bucket)].stages;
  };
  auto misfit = std::ranges::find_if(
      members, [&](const auto& round) { return round.second != stages_of(round.first).size(); });
  if (misfit == members.end() &&
      topological_order(dag, DagAdjacency(dag), Rendezvous(dag)).size() < dag.nodes.size()) {
    misfit = std::ranges::find_if(
        members, [&](const auto& round) { return stages_of(round.first).size() > 1; });
  }
  if (misfit == members.end()) {
    return;
  }
  std::vector<int> stages;
  for (const StageId stage : stages_of(misfit->first)) {
    stages.push_back(stage.value);
  }
  throw Error(
      Errc::ScheduleInvalid,
      fmt::format("stages {} are copies of one stage in the schedule, and their rows do not "
                  "come to the same sums and gathers in the same order: let the rows do "
                  "the same in each column, each for its own copies, as in chimera, or let "
                  "the copies share the optimizer's state alone (--zero 1, or "
                  "shard_optimizer in a strategy)",
                  fmt::join(stages, " and ")));
}

}  // namespace

IssuedDag issue(TrainingDag dag) {
  IssuedDag issued{.dag = std::move(dag), .streams = {}, .lists = {}};
  if (shards_by_task(issued.dag)) {
    elide(issued.dag);
    require_common_rounds(issued.dag);
  }
  issued.streams = order_streams(issued.dag);
  delay_receives(issued.dag, issued.streams);
  order_communication(issued.dag);
  issued.lists = dispatch_order(issued.dag);
  return issued;
}

}  // namespace stagecraft
