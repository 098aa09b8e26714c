#include "stagecraft/scheduler/planners/kept_orders.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/planners/pfeife/channels.h"
#include "stagecraft/scheduler/planners/pfeife/phase_barriers.h"
#include "stagecraft/scheduler/planners/pfeife/step_graph.h"

namespace stagecraft {
namespace {

void set_weights(StepGraph& graph, const Placement& placement, int stages, const Costs& costs) {
  for (int s = 0; s < stages; ++s) {
    for (const CellKind kind : {CellKind::Forward,
                                CellKind::Backward,
                                CellKind::BackwardInput,
                                CellKind::BackwardWeight,
                                CellKind::Update}) {
      graph.set_duration(StageId(s), kind, costs.stages.of_stage(StageId(s)).of(kind));
    }
  }
  for (std::size_t e = 0; e < graph.edges().size(); ++e) {
    const StepGraph::Edge& edge = graph.edges()[e];
    const int from = placement.row(StageId(edge.first)).value_or(0);
    const int to = placement.row(StageId(edge.second)).value_or(0);
    graph.set_transfer(
        e, costs.links.transfer(edge, from, to), costs.links.transfer(edge, to, from));
  }
}

}  // namespace

std::vector<EventOrder> kept_orders(const PlanRequest& request,
                                    const Schedule& schedule,
                                    const StageGraph& stages,
                                    const Costs& costs) {
  std::vector<EventOrder> orders =
      request.phases ? phase_barriers(schedule, stages) : std::vector<EventOrder>();
  orders.insert(orders.end(), request.orders.begin(), request.orders.end());
  if (orders.empty() && !request.shared_channels) {
    return orders;
  }
  try {
    StepGraph graph(schedule,
                    stages,
                    orders,
                    request.shared_channels ? StepTransfers::Vertices : StepTransfers::Delays);
    if (request.shared_channels) {
      const Placement placement = Placement::of(schedule, stages.size());
      set_weights(graph, placement, stages.size(), costs);
      share_channels(graph, placement, request.is_over("turns on channels"));
      const std::vector<EventOrder> turns = channel_orders(graph, placement);
      orders.insert(orders.end(), turns.begin(), turns.end());
    }
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleInvalid) {
      throw;
    }
    throw Error(Errc::UsageArgument, error.message());
  }
  return orders;
}

}  // namespace stagecraft
