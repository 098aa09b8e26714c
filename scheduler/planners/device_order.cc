#include "stagecraft/scheduler/planners/device_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "stagecraft/scheduler/costs/row_devices.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/placement.h"

namespace stagecraft {
namespace {

constexpr double kWorthMoving = 1e-9;  // of a step; a smaller gain is rounding

/// Returns the time of both directions.
double seconds_between(const LinkCosts& links, int one, int other, double bytes) {
  return links.between(one, other).time_of(bytes) + links.between(other, one).time_of(bytes);
}

/// Takes the nearest remaining device as the next one. Also returns the total transfer time between
/// neighbors.
std::pair<DeviceOrder, double> order_from(const LinkCosts& links,
                                          int devices,
                                          int first,
                                          double bytes) {
  DeviceOrder order{first};
  std::vector<int> left;
  for (int device = 0; device < devices; ++device) {
    if (device != first) {
      left.push_back(device);
    }
  }
  double seconds = 0;
  while (!left.empty()) {
    const auto nearest = std::ranges::min_element(
        left, {}, [&](int device) { return seconds_between(links, order.back(), device, bytes); });
    seconds += seconds_between(links, order.back(), *nearest, bytes);
    order.push_back(*nearest);
    left.erase(nearest);
  }
  return {std::move(order), seconds};
}

/// Returns the stage of the candidate that has the operator of this id.
std::optional<std::size_t> stage_with(const WorkGraph& graph, const Candidate& candidate, int id) {
  for (std::size_t s = 0; s < candidate.stages.size(); ++s) {
    for (const int op : candidate.stages[s]) {
      if (std::ranges::find(graph.ids(op), id) != graph.ids(op).end()) {
        return s;
      }
    }
  }
  return std::nullopt;
}

/// Keeps DO-1: a plan that fits does not become longer.
bool is_better(const PlanProposal& tried, const PlanProposal& before) {
  if (!before.fits) {
    return tried.lacks() < before.lacks();
  }
  return tried.fits && tried.step < before.step * (1 - kWorthMoving);
}

/// Exchanges the tasks of two devices: their rows, or their numbers in the schedule's places.
Candidate exchanged(Candidate candidate, int one, int other) {
  Schedule::Headers headers = candidate.schedule.headers();
  std::vector<Schedule::Row> rows = candidate.schedule.rows();
  if (headers.places.empty()) {
    std::swap(rows[static_cast<std::size_t>(one)], rows[static_cast<std::size_t>(other)]);
  }
  for (std::vector<Rank>& ranks : headers.places) {
    for (Rank& rank : ranks) {
      rank = rank == Rank(one) ? Rank(other) : rank == Rank(other) ? Rank(one) : rank;
    }
  }
  candidate.schedule = Schedule(candidate.schedule.form(), std::move(rows), std::move(headers));
  return candidate;
}

/// Returns whether the two devices stand behind one row, so that an exchange changes nothing.
bool is_same_row(const PlanProposal& proposal, int one, int other) {
  return std::ranges::any_of(proposal.devices_of_row, [&](const std::vector<int>& devices) {
    return std::ranges::find(devices, one) != devices.end() &&
           std::ranges::find(devices, other) != devices.end();
  });
}

/// Returns whether the two devices compute, hold and transfer alike, so that an exchange changes
/// nothing.
bool are_alike(const Costs& costs, int one, int other, int devices) {
  if (traits_of(costs.devices, one) != traits_of(costs.devices, other)) {
    return false;
  }
  const LinkCosts& links = costs.links;
  for (int third = 0; third < devices; ++third) {
    const bool is_third = third != one && third != other;
    if (is_third && (links.between(one, third) != links.between(other, third) ||
                     links.between(third, one) != links.between(third, other))) {
      return false;
    }
  }
  return links.between(one, other) == links.between(other, one);
}

/// Returns the number of devices of a candidate's schedule.
int devices_of(const Schedule& schedule) {
  std::size_t devices = 0;
  for (const std::vector<Rank>& ranks : schedule.headers().places) {
    devices += ranks.size();
  }
  return static_cast<int>(devices > 0 ? devices : schedule.rows().size());
}

}  // namespace

bool devices_differ(const Costs& costs, int devices) {
  for (int device = 1; device < devices; ++device) {
    if (traits_of(costs.devices, device) != traits_of(costs.devices, 0)) {
      return true;
    }
  }
  return false;
}

bool links_differ(const LinkCosts& links, int devices) {
  const Link first = links.between(0, 1);
  for (int from = 0; from < devices; ++from) {
    for (int to = 0; to < devices; ++to) {
      if (from != to && links.between(from, to) != first) {
        return true;
      }
    }
  }
  return false;
}

DeviceOrder neighbors_order(const LinkCosts& links, int devices, double bytes) {
  std::pair<DeviceOrder, double> best{{}, std::numeric_limits<double>::infinity()};
  for (int first = 0; first < devices; ++first) {
    std::pair<DeviceOrder, double> found = order_from(links, devices, first, bytes);
    if (best.first.empty() || found.second < best.second) {
      best = std::move(found);
    }
  }
  return best.first;
}

PlanRequest seen_from(PlanRequest request, const DeviceOrder& order) {
  const LinkCosts links = request.costs.links;
  request.costs.links.each.clear();
  for (int from = 0; from < std::ssize(order); ++from) {
    for (int to = 0; to < std::ssize(order); ++to) {
      const auto found = links.each.find(
          {order[static_cast<std::size_t>(from)], order[static_cast<std::size_t>(to)]});
      if (found != links.each.end()) {
        request.costs.links.each[{from, to}] = found->second;
      }
    }
  }
  return request;
}

Candidate moved(Candidate candidate, const DeviceOrder& order) {
  const Schedule& before = candidate.schedule;
  std::vector<Schedule::Row> rows(order.size());
  for (std::size_t row = 0; row < order.size(); ++row) {
    rows[static_cast<std::size_t>(order[row])] = before.rows()[row];
  }
  candidate.schedule = Schedule(before.form(), std::move(rows), before.headers());
  return candidate;
}

std::optional<Candidate> on_pinned_devices(const PlanRequest& request,
                                           const WorkGraph& graph,
                                           const Candidate& candidate) {
  const auto devices = static_cast<int>(candidate.schedule.rows().size());
  const Placement placement = Placement::of(candidate.schedule, candidate.schedule.stages());
  const Layout layout = Layout::of(candidate.schedule);
  DeviceOrder order(static_cast<std::size_t>(devices), -1);
  std::set<int> taken;
  for (const auto& [id, device] : request.pinned) {
    const auto stage = stage_with(graph, candidate, id);
    if (!stage || device >= devices) {
      return std::nullopt;
    }
    const auto row = placement.row(layout.stage(StageId(*stage), 0));
    int& place = order[static_cast<std::size_t>(row.value_or(0))];
    if (!row || (place >= 0 && place != device) || (place < 0 && !taken.insert(device).second)) {
      return std::nullopt;
    }
    place = device;
  }
  // A free row stays if possible; otherwise it takes the first remaining device.
  for (int row = 0; row < devices; ++row) {
    int& place = order[static_cast<std::size_t>(row)];
    if (place < 0 && taken.insert(row).second) {
      place = row;
    }
  }
  int next = 0;
  for (int& place : order) {
    while (place < 0) {
      place = taken.insert(next).second ? next : -1;
      ++next;
    }
  }
  return moved(candidate, order);
}

PlanProposal best_device_order(Judge& judge,
                               const PlanRequest& request,
                               PlanProposal proposal,
                               int& tries,
                               const std::function<PlanProposal(PlanProposal)>& fitted) {
  const int devices = devices_of(proposal.candidate.schedule);
  const auto stays = [&](int device) {
    return std::ranges::any_of(request.pinned,
                               [&](const auto& pin) { return pin.second == device; });
  };
  for (bool better = true; better;) {
    better = false;
    for (int one = 0; one < devices; ++one) {
      for (int other = one + 1; other < devices && !stays(one); ++other) {
        if (stays(other) || tries <= 0 || is_same_row(proposal, one, other) ||
            are_alike(request.costs, one, other, devices) ||
            !request.proceeds("the order of devices", proposal.fits)) {
          continue;
        }
        --tries;
        PlanProposal tried = judge.propose(exchanged(proposal.candidate, one, other));
        if (fitted) {
          tried = fitted(std::move(tried));
        }
        if (is_better(tried, proposal)) {
          proposal = std::move(tried);
          better = true;
        }
      }
    }
  }
  return proposal;
}

}  // namespace stagecraft
