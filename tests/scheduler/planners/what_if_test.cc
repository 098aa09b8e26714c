#include "stagecraft/scheduler/planners/what_if.h"

#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::chain_request;
using test::two_stages;

bool wins(const PlanRequest& request, const Candidate& one, const Candidate& other) {
  const PlanProposal theirs = judge(request, one);
  return theirs.fits && theirs.step <= judge(request, other).step;
}

TEST_CASE("what the runner-up needs makes it win, and less does not", "[scheduler][planners]") {
  const PlanRequest request = chain_request({1, 1, 1, 1});
  const Candidate even = two_stages(2, 4), uneven = two_stages(3, 4);
  const std::vector<WhatIf> needs =
      what_it_takes(request, judge(request, even), judge(request, uneven));
  REQUIRE_FALSE(needs.empty());
  REQUIRE_FALSE(wins(request, uneven, even));
  for (const WhatIf& need : needs) {
    CHECK(wins(with(request, need), uneven, even));
    WhatIf less = need;
    less.factor = 1 + (need.factor - 1) * 0.98;
    CHECK_FALSE(wins(with(request, less), uneven, even));
  }
  CHECK(needs.back().kind == WhatIf::Kind::Operators);
  CHECK(needs.back().stage == 0);
  CHECK_THAT(to_string(needs.back()), ContainsSubstring("the operators of its stage 0 took"));
}

TEST_CASE("a plan that does not fit needs memory, by the byte", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 4, 1});
  const Candidate early = two_stages(2, 4), late = two_stages(3, 4);
  const PlanProposal faster = judge(request, early), slower = judge(request, late);
  REQUIRE(faster.step < slower.step);
  request.memory = faster.bytes[0] - 1;
  const std::vector<WhatIf> needs = what_it_takes(request, slower, judge(request, early));
  REQUIRE(needs.size() == 1);
  CHECK(needs[0].kind == WhatIf::Kind::Memory);
  CHECK(needs[0].bytes == faster.bytes[0]);
  CHECK(needs[0].from == 0);
  CHECK(wins(with(request, needs[0]), early, late));
}

TEST_CASE("a changed link, memory or stage is that of the request it makes",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.costs.links.usual = {.latency = 2, .bandwidth = 8};
  request.costs.operators_at[2] = request.costs.operators;
  const PlanRequest link = with(request, {.from = 0, .to = 1, .factor = 2});
  CHECK(link.costs.links.each.at({0, 1}) == Link{.latency = 1, .bandwidth = 16});
  CHECK(link.costs.links.each.at({1, 0}) == Link{.latency = 1, .bandwidth = 16});
  CHECK(link.costs.links.usual == request.costs.links.usual);
  CHECK(with(request, {.kind = WhatIf::Kind::Memory, .bytes = 7}).memory == 7);
  const PlanRequest quick =
      with(request, {.kind = WhatIf::Kind::Operators, .factor = 0.5, .operators = {1}});
  CHECK(quick.costs.operators[1].forward == 0.5);
  CHECK(quick.costs.operators_at.at(2)[1].backward_weight == 0.5);
  CHECK(quick.costs.operators[0] == request.costs.operators[0]);
}

}  // namespace
}  // namespace stagecraft
