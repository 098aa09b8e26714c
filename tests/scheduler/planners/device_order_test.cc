#include "stagecraft/scheduler/planners/device_order.h"

#include <algorithm>
#include <utility>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using test::chain_request;

PlanRequest with_slow_link(PlanRequest request, int one, int other) {
  request.costs.links.usual = {.latency = 0.25};
  request.costs.links.each[{one, other}] = {.latency = 100};
  request.costs.links.each[{other, one}] = {.latency = 100};
  return request;
}

PlanRequest three_devices() {
  PlanRequest request = chain_request({1, 1, 1, 1, 1, 1});
  request.devices = 3;
  return request;
}

/// Returns a candidate with one stage per device, run by 1F1B.
Candidate in_a_row(const PlanRequest& request) {
  Candidate candidate{.planner = "test", .stages = {}, .microbatch_size = 1};
  const auto operators = static_cast<int>(request.costs.operators.size());
  for (int d = 0; d < request.devices; ++d) {
    std::vector<int>& stage = candidate.stages.emplace_back();
    for (int op = operators * d / request.devices; op < operators * (d + 1) / request.devices;
         ++op) {
      stage.push_back(op);
    }
  }
  candidate.schedule = one_f_one_b(request.devices, request.batch);
  candidate.schedule_name = "1f1b";
  return candidate;
}

TEST_CASE("no plan uses a slow link that another order of devices avoids",
          "[scheduler][planners]") {
  for (const char* planner : {"balance", "pfeife", "graphpipe", "capslog", "auto"}) {
    CAPTURE(planner);
    PlanRequest request = three_devices();
    request.builder = "1f1b";
    request.costs.links.usual = {.latency = 0.25};
    const double free = propose(request, planner).front().step;
    const PlanProposal best = propose(with_slow_link(request, 0, 1), planner).front();
    CHECK(best.step <= free * (1 + kAlike));
    for (const auto& [from, to] : best.graph.edges()) {
      const int one = best.devices[static_cast<std::size_t>(from)];
      const int other = best.devices[static_cast<std::size_t>(to)];
      CHECK(std::pair(std::min(one, other), std::max(one, other)) != std::pair(0, 1));
    }
    CHECK(
        validate(best.candidate.schedule, best.graph, {.microbatches = best.microbatches}).empty());
  }
}

TEST_CASE("a schedule that is given keeps its rows", "[scheduler][planners]") {
  PlanRequest request = with_slow_link(three_devices(), 0, 1);
  request.schedule = one_f_one_b(3, 4);
  for (const PlanProposal& one : propose(request, "auto")) {
    CHECK(one.candidate.schedule == *request.schedule);
  }
}

TEST_CASE("links differ where one of those between the devices does", "[scheduler][planners]") {
  const LinkCosts links = with_slow_link(three_devices(), 1, 2).costs.links;
  CHECK(links_differ(links, 3));
  CHECK_FALSE(links_differ(links, 2));
  CHECK_FALSE(links_differ({}, 3));
  CHECK_FALSE(links_differ(links, 1));
}

TEST_CASE("neighbors have the fast links", "[scheduler][planners]") {
  const LinkCosts links = with_slow_link(three_devices(), 0, 1).costs.links;
  const DeviceOrder order = neighbors_order(links, 3, 8);
  CHECK(order[1] == 2);
}

TEST_CASE("exchanges of devices end where none helps (DO-1)", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 2, 1, 3, 1, 1, 2, 1});
  request.devices = 4;
  int number = 0;
  for (int from = 0; from < 4; ++from) {
    for (int to = 0; to < 4; ++to) {
      number = (number * 7 + 3) % 11;
      request.costs.links.each[{from, to}] = {.latency = static_cast<double>(number)};
    }
  }
  Judge judge(request);
  const PlanProposal first = judge.propose(in_a_row(request));
  int tries = 400;
  const PlanProposal best = best_device_order(judge, request, first, tries);
  CHECK(best.step < first.step);
  CHECK(tries > 0);
  for (int one = 0; one < 4; ++one) {
    for (int other = one + 1; other < 4; ++other) {
      DeviceOrder order{0, 1, 2, 3};
      std::swap(order[static_cast<std::size_t>(one)], order[static_cast<std::size_t>(other)]);
      CHECK(judge.propose(moved(best.candidate, order)).step >= best.step * (1 - 1e-9));
    }
  }
  int none = 0;
  CHECK(best_device_order(judge, request, first, none).step == first.step);
}

TEST_CASE("pinned operators get their devices and keep them", "[scheduler][planners]") {
  PlanRequest request = with_slow_link(three_devices(), 0, 1);
  const WorkGraph graph = WorkGraph::of(request.costs, 1);
  request.pinned = {{0, 1}, {1, 1}, {4, 0}};
  const auto pinned = on_pinned_devices(request, graph, in_a_row(request));
  REQUIRE(pinned);
  const PlanProposal made = judge(request, *pinned);
  CHECK(made.devices == std::vector{1, 2, 0});
  Judge again(request);
  int tries = 400;
  CHECK(best_device_order(again, request, made, tries).devices == std::vector{1, 2, 0});
  request.pinned = {{0, 1}, {1, 2}};  // one stage on two devices
  CHECK_FALSE(on_pinned_devices(request, graph, in_a_row(request)));
  request.pinned = {{0, 1}, {2, 1}};  // two rows on one device
  CHECK_FALSE(on_pinned_devices(request, graph, in_a_row(request)));
  request.pinned = {{0, 7}};
  CHECK_FALSE(on_pinned_devices(request, graph, in_a_row(request)));
}

}  // namespace
}  // namespace stagecraft
