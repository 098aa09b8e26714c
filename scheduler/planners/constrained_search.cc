#include "stagecraft/scheduler/planners/constrained_search.h"

#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/device_order.h"

namespace stagecraft {
namespace {

/// Returns the mean size of a result, an estimate of the bytes between two stages.
double usual_bytes(const WorkGraph& graph) {
  double bytes = 0;
  for (const WorkGraph::Result& result : graph.results()) {
    bytes += result.bytes;
  }
  return graph.results().empty() ? 0 : bytes / static_cast<double>(graph.results().size());
}

using CandidateSearch = std::function<std::vector<Candidate>(const PlanRequest&)>;

std::vector<Candidate> searched_by_order(const CandidateSearch& search,
                                         const PlanRequest& request,
                                         const WorkGraph& graph) {
  std::vector<Candidate> found = search(request);
  if (request.schedule || !links_differ(request.costs.links, request.devices)) {
    return found;
  }
  const DeviceOrder order =
      neighbors_order(request.costs.links, request.devices, usual_bytes(graph));
  try {
    for (Candidate& candidate : search(seen_from(request, order))) {
      const bool on_all = candidate.schedule.rows().size() == order.size();
      found.push_back(on_all ? moved(std::move(candidate), order) : std::move(candidate));
    }
  } catch (const Error& error) {
    if (error.code() != Errc::PlanInfeasible) {
      throw;
    }
  }
  return found;
}

}  // namespace

std::vector<Candidate> constrained_search(const CandidateSearch& search,
                                          const PlanRequest& request) {
  const WorkGraph graph = WorkGraph::of(request.costs, request.sizes().front());
  std::vector<Candidate> kept;
  for (Candidate& candidate : searched_by_order(search, request, graph)) {
    if (request.most_stages > 0 && std::ssize(candidate.stages) > request.most_stages) {
      continue;
    }
    if (request.pinned.empty()) {
      kept.push_back(std::move(candidate));
    } else if (auto pinned = on_pinned_devices(request, graph, candidate)) {
      kept.push_back(*std::move(pinned));
    }
  }
  if (kept.empty() && (request.most_stages > 0 || !request.pinned.empty())) {
    throw Error(Errc::PlanInfeasible,
                fmt::format("none of its plans has {}",
                            request.pinned.empty()
                                ? "at most " + count_text(request.most_stages, "stage")
                                : std::string("the pinned operators on their devices and as few "
                                              "stages as asked for")));
  }
  return kept;
}

}  // namespace stagecraft
