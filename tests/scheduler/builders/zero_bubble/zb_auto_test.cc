#include "stagecraft/scheduler/builders/zero_bubble/zb_auto.h"

#include <algorithm>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h2.h"
#include "stagecraft/scheduler/notes/accumulation.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

double worst_span_idle(const Schedule& schedule, const Costs& costs) {
  double worst = 0;
  for (const RowTimeline& row : simulate(schedule, schedule.stage_graph(), costs).rows) {
    worst = std::max(worst, row.span_idle);
  }
  return worst;
}

Costs with_times(double f, double i, double w, double latency = 0) {
  Costs costs;
  costs.stages.usual = {.forward = f, .backward = i + w, .backward_input = i, .backward_weight = w};
  costs.links.usual.latency = latency;
  return costs;
}

void check_sound(const Schedule& schedule, int devices, int microbatches, int cap) {
  CAPTURE(devices, microbatches, cap);
  const StageGraph graph = schedule.stage_graph();
  REQUIRE(validate(schedule, graph, {.microbatches = microbatches, .devices = devices}).empty());
  REQUIRE_FALSE(reordered_accumulation(schedule, schedule.stage_graph()).has_value());
  for (const Schedule::Row& row : schedule.rows()) {
    REQUIRE(peak_in_flight(row, graph) <= cap);
  }
}

TEST_CASE("zb-auto is valid and within its cap for any size and costs",
          "[scheduler][zb-auto][property]") {
  const Costs equal = with_times(1, 1, 1);
  Costs uneven = with_times(4, 5, 3, 0.5);
  uneven.stages.each = {{.forward = 2, .backward_input = 1, .backward_weight = 6},
                        {.forward = 1, .backward_input = 7, .backward_weight = 2}};
  for (int devices = 1; devices <= 8; ++devices) {
    for (int microbatches = 1; microbatches <= 24; ++microbatches) {
      for (const int cap : {1, 2, devices, 2 * devices - 1, 3 * devices}) {
        check_sound(zb_auto(devices, microbatches, {equal, {cap}}), devices, microbatches, cap);
        check_sound(zb_auto(devices, microbatches, {uneven, {cap}}), devices, microbatches, cap);
      }
    }
  }
}

TEST_CASE("with the memory of 1F1B it is no worse than ZB-H1, with twice that than ZB-H2",
          "[scheduler][zb-auto]") {
  struct Case {
    int devices, microbatches;
    Costs costs;
  };
  const std::vector<Case> cases{{4, 8, with_times(1, 1, 1)},
                                {8, 16, with_times(1, 1, 1)},
                                {4, 12, with_times(4, 5, 3)},
                                {4, 12, with_times(5, 4, 2)},
                                {6, 24, with_times(2, 3, 2, 0.5)}};
  for (const Case& c : cases) {
    CAPTURE(c.devices, c.microbatches);
    const int twice = 2 * c.devices - 1;
    const double small =
        worst_span_idle(zb_auto(c.devices, c.microbatches, {c.costs, {c.devices}}), c.costs);
    const double large =
        worst_span_idle(zb_auto(c.devices, c.microbatches, {c.costs, {twice}}), c.costs);
    CHECK(small <= worst_span_idle(zb_h1(c.devices, c.microbatches), c.costs));
    CHECK(large <= worst_span_idle(zb_h2(c.devices, c.microbatches), c.costs));
    CHECK(large <= small);
  }
}

TEST_CASE("it makes use of any memory in between and beyond", "[scheduler][zb-auto]") {
  const Costs costs = with_times(4, 5, 3);
  double before = worst_span_idle(zb_h1(4, 12), costs);
  REQUIRE(before == 18);
  for (const int cap : {6, 7, 8, 9}) {
    CAPTURE(cap);
    const double now = worst_span_idle(zb_auto(4, 12, {costs, {cap}}), costs);
    CHECK(now < before);
    before = now;
  }
  CHECK(before < worst_span_idle(zb_h2(4, 12), costs));
}

TEST_CASE("with equal costs and the memory of ZB-H2 no device stands idle between its tasks",
          "[scheduler][zb-auto]") {
  const Costs costs = with_times(1, 1, 1);
  CHECK(worst_span_idle(zb_auto(4, 8, {costs, {7}}), costs) == 0);
  CHECK(worst_span_idle(zb_auto(8, 16, {costs, {15}}), costs) == 0);
}

TEST_CASE("its parameters come as words, and wrong ones are refused with what would do",
          "[scheduler][zb-auto]") {
  const auto with = [](std::map<std::string, std::string> set) {
    return build_schedule("zb-auto", {.devices = 4, .microbatches = 8, .set = std::move(set)});
  };
  CHECK(with({{"f", "4"}, {"i", "5"}, {"w", "3"}, {"c", "0.5"}, {"cap", "6"}}) ==
        zb_auto(4, 8, {with_times(4, 5, 3, 0.5), {6}}));
  Costs by_stage = with_times(1, 1, 1);
  by_stage.stages.each.assign(4, by_stage.stages.usual);
  by_stage.stages.each[2].forward = 3;
  CHECK(with({{"f", "1,1,3,1"}, {"cap", "4,3,2,1"}}) == zb_auto(4, 8, {by_stage, {4, 3, 2, 1}}));
  CHECK_THROWS_WITH(with({{"cap", "0"}}),
                    ContainsSubstring("cap >= 1") && ContainsSubstring("nearest: 1"));
  CHECK_THROWS_WITH(with({{"cap", "4,4"}}), ContainsSubstring("one for each of 4 devices"));
  CHECK_THROWS_WITH(with({{"f", "1,2"}}), ContainsSubstring("one for each of 4 devices"));
  CHECK_THROWS_WITH(with({{"w", "-1"}}), ContainsSubstring("number of at least 0"));
  CHECK_THROWS_WITH(with({{"w", "much"}}), ContainsSubstring("'much'"));
  CHECK_THROWS_WITH(with({{"c", "1,2"}}), ContainsSubstring("parameter c"));
  CHECK_THROWS_WITH(with({{"f", "1e308"}}), ContainsSubstring("more than a number can hold"));
}

}  // namespace
}  // namespace stagecraft
