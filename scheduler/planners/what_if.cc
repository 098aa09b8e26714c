#include "stagecraft/scheduler/planners/what_if.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/scheduler/planners/judge.h"

namespace stagecraft {
namespace {

constexpr double kMostTimes = 100;    // the largest factor for a link, faster or slower
constexpr double kLeastFactor = 0.1;  // the smallest factor for a stage's times
constexpr int kSteps = 8;
constexpr int kHalvings = 10;

/// Returns whether `other` would be chosen over `chosen` under this request.
bool wins(const PlanRequest& request, const PlanProposal& chosen, const PlanProposal& other) {
  const PlanProposal theirs = judge(request, other.candidate);
  return theirs.fits && leads(theirs, judge(request, chosen.candidate));
}

/// Returns whether the search for changes goes on.
bool goes_on(const PlanRequest& request) {
  return request.proceeds("what would change the choice", true);
}

/// Returns the factor nearest to 1, down or up to `most`, that is `enough`; nothing if no factor
/// tried is. A larger change may not be enough again, so several are tried. Without time left it
/// returns what is known.
std::optional<double> least(const PlanRequest& request,
                            double most,
                            const std::function<bool(double)>& enough) {
  double no = 1;
  for (int step = 1; step <= kSteps && goes_on(request); ++step) {
    double yes = std::pow(most, static_cast<double>(step) / kSteps);
    // A judgment that the end of the time cut short does not count.
    if (!enough(yes) || !goes_on(request)) {
      no = yes;
      continue;
    }
    for (int i = 0; i < kHalvings && goes_on(request); ++i) {
      const double middle = (no + yes) / 2;
      (enough(middle) && goes_on(request) ? yes : no) = middle;
    }
    return yes;
  }
  return std::nullopt;
}

/// Returns the pairs of devices between which a plan transfers values.
std::set<std::pair<int, int>> links_of(const PlanProposal& proposal) {
  std::set<std::pair<int, int>> links;
  for (const StageGraph::Edge& edge : proposal.graph.edges()) {
    const int from = proposal.devices[static_cast<std::size_t>(edge.first)];
    const int to = proposal.devices[static_cast<std::size_t>(edge.second)];
    if (from != to) {
      links.emplace(std::min(from, to), std::max(from, to));
    }
  }
  return links;
}

Link faster(const Link& link, double times) {
  return {.latency = link.latency / times, .bandwidth = link.bandwidth * times};
}

}  // namespace

PlanRequest with(PlanRequest request, const WhatIf& otherwise) {
  switch (otherwise.kind) {
    case WhatIf::Kind::Memory:
      request.memory = otherwise.bytes;
      for (auto& [device, traits] : request.costs.devices) {
        traits.memory = DeviceTraits().memory;
      }
      break;
    case WhatIf::Kind::Link: {
      LinkCosts& links = request.costs.links;
      for (const auto& [from, to] :
           {std::pair(otherwise.from, otherwise.to), std::pair(otherwise.to, otherwise.from)}) {
        const Link link = links.between(from, to);
        links.each[{from, to}] = faster(link, otherwise.factor);
      }
      break;
    }
    case WhatIf::Kind::Operators: {
      const WorkGraph graph = WorkGraph::of(request.costs, request.costs.samples);
      const std::vector<int> ids = ids_of(graph, {otherwise.operators}).front();
      const auto scale = [&](std::vector<OperatorCost>& operators) {
        for (OperatorCost& cost : operators) {
          if (std::ranges::binary_search(ids, cost.id)) {
            cost.forward *= otherwise.factor;
            cost.backward_input *= otherwise.factor;
            cost.backward_weight *= otherwise.factor;
          }
        }
      };
      scale(request.costs.operators);
      for (auto& [samples, operators] : request.costs.operators_at) {
        scale(operators);
      }
      break;
    }
  }
  return request;
}

std::vector<WhatIf> what_it_takes(const PlanRequest& request,
                                  const PlanProposal& chosen,
                                  const PlanProposal& other) {
  std::vector<WhatIf> found;
  PlanRequest roomy = request;
  if (!other.fits) {
    WhatIf more{.kind = WhatIf::Kind::Memory,
                .from = other.first_device(other.fullest()),
                .bytes = other.needs()};
    roomy = with(request, more);
    if (wins(roomy, chosen, other)) {
      found.push_back(std::move(more));
    }
    return found;
  }
  std::optional<WhatIf> link;
  std::set<std::pair<int, int>> links;
  // A link between rows with copies is several links, of which one alone decides little.
  if (chosen.candidate.schedule.headers().places.empty() &&
      other.candidate.schedule.headers().places.empty()) {
    links = links_of(other);
    links.merge(links_of(chosen));
  }
  for (const auto& [from, to] : links) {
    for (const double most : {kMostTimes, 1 / kMostTimes}) {
      WhatIf one{.kind = WhatIf::Kind::Link, .from = from, .to = to};
      const auto factor = least(request, most, [&](double times) {
        one.factor = times;
        return wins(with(request, one), chosen, other);
      });
      const auto change = [](double f) { return std::max(f, 1 / f); };
      if (factor && (!link || change(*factor) < change(link->factor))) {
        one.factor = *factor;
        link = one;
      }
    }
  }
  std::optional<WhatIf> stage;
  for (std::size_t s = 0; s < other.candidate.stages.size(); ++s) {
    WhatIf one{.kind = WhatIf::Kind::Operators,
               .operators = other.candidate.stages[s],
               .stage = static_cast<int>(s)};
    const auto factor = least(request, kLeastFactor, [&](double times) {
      one.factor = times;
      return wins(with(request, one), chosen, other);
    });
    if (factor && (!stage || *factor > stage->factor)) {
      one.factor = *factor;
      stage = one;
    }
  }
  for (std::optional<WhatIf>* one : {&link, &stage}) {
    if (*one) {
      found.push_back(std::move(**one));
    }
  }
  return found;
}

std::string to_string(const WhatIf& otherwise) {
  switch (otherwise.kind) {
    case WhatIf::Kind::Memory:
      return fmt::format("devices had {} (its device {} needs them)",
                         enough_bytes_text(otherwise.bytes),
                         otherwise.from);
    case WhatIf::Kind::Link:
      return otherwise.factor > 1 ? fmt::format("the link {}-{} were {:.3g} times as fast",
                                                otherwise.from,
                                                otherwise.to,
                                                otherwise.factor)
                                  : fmt::format("the link {}-{} were {:.3g} times as slow",
                                                otherwise.from,
                                                otherwise.to,
                                                1 / otherwise.factor);
    case WhatIf::Kind::Operators:
      break;
  }
  return fmt::format("the operators of its stage {} took {:.3g} % less time",
                     otherwise.stage,
                     100 * (1 - otherwise.factor));
}

}  // namespace stagecraft
