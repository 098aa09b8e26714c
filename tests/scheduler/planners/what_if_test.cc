#include "stagecraft/scheduler/planners/what_if.h"

#include <algorithm>

#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::chain_request;
using test::two_stages;

bool wins(const PlanRequest& request, const Candidate& one, const Candidate& other) {
  const PlanProposal theirs = judge(request, one);
  return theirs.fits && leads(theirs, judge(request, other));
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
  request.memory = faster.needs() - 1;
  const std::vector<WhatIf> needs = what_it_takes(request, slower, judge(request, early));
  REQUIRE(needs.size() == 1);
  CHECK(needs[0].kind == WhatIf::Kind::Memory);
  CHECK(needs[0].bytes == faster.bytes[0] * (1 + kMemoryMargin));
  CHECK(needs[0].from == 0);
  CHECK(wins(with(request, needs[0]), early, late));
}

/// Plans again with the values that the answer names, and finds the former winner slower.
void check_by_planning(const PlanRequest& request,
                       const WhatIf& answer,
                       const PlanProposal& winner,
                       const PlanProposal& rival) {
  CAPTURE(to_string(answer), winner.candidate.schedule_name, rival.candidate.schedule_name);
  const PlanRequest changed = with(request, answer);
  const PlanProposal now = judge(changed, rival.candidate);
  const PlanProposal before = judge(changed, winner.candidate);
  CHECK(leads(now, before));
  const PlanProposal best = propose(changed, "auto").front();
  CHECK(best.fits);
  CHECK(best.step <= now.step * (1 + kAlike));
  CHECK_FALSE((best.candidate.stages == before.candidate.stages &&
               best.candidate.schedule == before.candidate.schedule));
}

TEST_CASE("planning again under each answer for a runner-up finds the winner behind",
          "[scheduler][planners]") {
  PlanRequest request = chain_request(GENERATE(std::vector<double>{1, 2, 1, 3, 1, 1, 2, 1},
                                               std::vector<double>{3, 1, 4, 1, 5, 9, 2, 6},
                                               std::vector<double>{1, 1, 1, 1, 1, 1, 1, 6}));
  request.costs.links.usual = {.latency = 0.1, .bandwidth = GENERATE(2.0, 40.0)};
  request.costs.links.sums = {.latency = 100};  // no copies, which win by far
  const std::vector<PlanProposal> all = propose(request, "auto");
  const double longer = 1.001 * all.front().step;
  int stages = 0, rivals = 0;
  for (const PlanProposal& rival : all) {
    if (rival.step <= longer || (++rivals > 5 && stages > 0)) {
      continue;
    }
    for (const WhatIf& answer : what_it_takes(request, all.front(), rival)) {
      check_by_planning(request, answer, all.front(), rival);
      stages += answer.kind == WhatIf::Kind::Operators ? 1 : 0;
    }
  }
  CHECK(stages > 0);
}

TEST_CASE("a faster link alone makes the plan that hands over more the better one",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({2, 2, 2, 2, 1, 1, 1, 1});
  request.costs.operators[4].reads[0].bytes = 800;  // between the halves, where an even cut is
  request.costs.links.usual = {.latency = 0.01, .bandwidth = 40};
  request.costs.operators[3].reads[0].bytes = 800;
  const std::vector<PlanProposal> all = propose(request, "auto");
  bool link = false;
  for (const PlanProposal& rival : all) {
    if (rival.step < all.front().step * 1.001 || rival.step > all.front().step * 1.5) {
      continue;
    }
    for (const WhatIf& answer : what_it_takes(request, all.front(), rival)) {
      if (answer.kind == WhatIf::Kind::Link && !link) {
        link = true;
        check_by_planning(request, answer, all.front(), rival);
      }
    }
  }
  CHECK(link);
}

TEST_CASE("planning again with the memory that a faster plan lacks finds that plan",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({3, 1, 4, 1, 5, 9, 2, 6});
  const PlanProposal fastest = propose(request, "auto").front();
  PlanProposal chosen = fastest;
  while (chosen.step <= fastest.step * (1 + kAlike)) {  // another cut may be as fast with less
    request.memory = chosen.most_bytes() - 1;
    chosen = propose(request, "auto").front();
  }
  const PlanProposal barred = judge(request, fastest.candidate);
  REQUIRE(chosen.fits);
  REQUIRE_FALSE(barred.fits);
  const std::vector<WhatIf> answers = what_it_takes(request, chosen, barred);
  REQUIRE(answers.size() == 1);
  CHECK(answers.front().kind == WhatIf::Kind::Memory);
  check_by_planning(request, answers.front(), chosen, barred);
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
