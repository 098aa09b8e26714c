/// Tests barriers and shared channels as requests ask for them: they count for the plans of every
/// planner.
#include "stagecraft/scheduler/planners/kept_orders.h"

#include <algorithm>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/scheduler/formats/event_orders.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/scheduler/planners/chain_costs.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::chain_request;

PlanRequest two_operators(double link, int microbatches) {
  PlanRequest request{.costs = chain_costs({10, 10}), .devices = 2, .batch = microbatches};
  request.costs.links.usual.latency = link;
  return request;
}

/// Returns the step time of the best plan for a schedule with one block, with free and with shared
/// channels.
std::pair<double, double> steps_of(int microbatches, std::vector<int> extra, double link) {
  PlanRequest request = two_operators(link, microbatches);
  request.schedule = pfeife(2, microbatches, {.extra = std::move(extra)});
  const double free = propose(request, "auto").front().step;
  request.shared_channels = true;
  return {free, propose(request, "auto").front().step};
}

TEST_CASE("plans are judged by one half-duplex channel where the request says so",
          "[scheduler][planners]") {
  using Steps = std::pair<double, double>;
  CHECK(steps_of(4, {1, 0}, 8) == Steps{166, 166});
  CHECK(steps_of(4, {1, 0}, 12) == Steps{174, 174});
  CHECK(steps_of(4, {1, 0}, 20) == Steps{200, 210});
  CHECK(steps_of(3, {0, 0}, 8) == Steps{152, 152});
  CHECK(steps_of(3, {1, 0}, 8) == Steps{136, 136});
}

TEST_CASE("what a plan predicts is what its timeline with its orders shows",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({3, 1, 4, 1, 5, 9, 2, 6});
  request.devices = GENERATE(2, 4);
  request.batch = 8;
  request.costs.links.usual = {.latency = 1, .bandwidth = 4};
  request.phases = GENERATE(false, true);
  request.shared_channels = GENERATE(false, true);
  for (const PlanProposal& one : propose(request, "auto")) {
    CAPTURE(one.candidate.planner, one.candidate.schedule_name);
    const Timeline timeline = simulate(one.candidate.schedule, one.graph, one.costs, one.orders);
    CHECK(timeline.makespan + one.update == Catch::Approx(one.step).epsilon(1e-12));
    CHECK(timeline.critical_path == one.critical_path);
    CHECK((one.orders.empty() || request.phases || request.shared_channels));
    PlanRequest free = request;
    free.phases = free.shared_channels = false;
    CHECK(judge(free, one.candidate).step <= one.step * (1 + 1e-12));
  }
}

TEST_CASE("transfers of a channel never overlap, also where rows share processors",
          "[scheduler][planners]") {
  PlanRequest request = two_operators(20, 4);
  request.shared_channels = true;
  request.costs.device.processors = GENERATE(0, 1);
  const Schedule schedule = pfeife(2, 4, {.extra = {1, 0}});
  request.schedule = schedule;
  const PlanProposal plan = propose(request, "pfeife").front();
  REQUIRE(plan.orders.size() == 2 * 4 - 1);
  // Each transfer begins when the one before it on the channel has ended, or later.
  for (const EventOrder& order : plan.orders) {
    CHECK(order.before.is_transfer());
    CHECK(order.after.is_transfer());
  }
  for (std::size_t i = 1; i < plan.orders.size(); ++i) {
    CHECK(plan.orders[i].before == plan.orders[i - 1].after);
  }
}

TEST_CASE("with phases computing and communicating take turns", "[scheduler][planners]") {
  PlanRequest request = two_operators(20, 2);
  request.costs.operators[0].forward = 15;
  request.costs.operators[0].backward_input = request.costs.operators[0].backward_weight = 15;
  request.schedule = gpipe(2, 2);
  const PlanProposal free = propose(request, "pfeife").front();
  request.phases = true;
  const PlanProposal turns = propose(request, "pfeife").front();
  // 1F1 ends at 60, 1B0 at 80, 0B0 at 130 and 0B1 at 160.
  CHECK(free.step == 160);
  // 0F1 begins at 35, its transfer at 50, so 1F1 ends at 80.
  CHECK(turns.step == 180);
  CHECK(turns.orders == parse_event_orders("0F0>1 < 0F1\n1F0 < 0F1>1"));
}

TEST_CASE("an order of the user's is kept by every plan, and no other plan is made",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.orders = parse_event_orders("1B3 < 0B0");  // stage 0 goes back after stage 1 has ended
  const std::vector<PlanProposal> all = propose(request, "auto");
  for (const PlanProposal& one : all) {
    CAPTURE(one.candidate.planner, one.candidate.schedule_name);
    CHECK(one.orders == request.orders);
    // 1F1B and schedules that split a backward cannot keep it.
    CHECK(one.candidate.schedule_name != "1f1b");
    CHECK_FALSE(one.candidate.schedule_name.starts_with("zb"));
  }
  CHECK(std::ranges::any_of(all, [](const PlanProposal& p) {
    return p.candidate.schedule_name == "gpipe" || p.candidate.schedule_name == "dag-gpipe";
  }));
}

TEST_CASE("orders that no schedule can keep are refused with the first of them",
          "[scheduler][planners][bad-input]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  const auto failure_of = [&](const std::string& orders, std::string_view planner) {
    request.orders = parse_event_orders(orders);
    return refusal([&] { (void)propose(request, planner); });
  };
  CHECK_THAT(failure_of("0F0 < 9F0", "auto"),
             ContainsSubstring("the order 0F0 < 9F0 names 9F0, which this schedule does not have"));
  CHECK_THAT(failure_of("0F0 < 0F1\n0B0 < 0F0", "auto"),
             ContainsSubstring("the order 0B0 < 0F0 cannot be kept"));
  CHECK_THAT(failure_of("1F0 < 0F0", "capslog"), ContainsSubstring("capslog: "));
  CHECK_THAT(failure_of("0F0>1 < 0F0", "graphpipe"),
             ContainsSubstring("give orders that their schedules can keep"));
}

TEST_CASE("a link on which a barrier has its sender wait binds", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.costs.links.usual.latency = 100;
  request.phases = true;
  const PlanProposal plan = propose(request, "capslog").front();
  CHECK(plan.binds.kind == Bottleneck::Kind::Link);
  CHECK(to_string(plan.binds).starts_with("the link 0-1 carries"));
}

}  // namespace
}  // namespace stagecraft
