/// The conformance suite of planners. Every planner of the registry passes it without a line of its
/// own here; a planner's own test holds what only this planner promises.
#include "stagecraft/scheduler/planners/registry.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/planners/constrained_search.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/tests/scheduler/planners/even_cut.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::chain_request;

std::vector<PlannerInfo> planners_and_example() {
  std::vector<PlannerInfo> all(planners().begin(), planners().end());
  all.push_back(test::even_cut());
  return all;
}

struct Job {
  std::string_view name;
  PlanRequest request;
};

PlanRequest eight_operators() {
  return chain_request({1, 2, 1, 3, 1, 1, 2, 1});
}

/// Returns a request for two towers of three operators that feed one head.
PlanRequest two_towers() {
  PlanRequest request = chain_request({1, 2, 1, 2, 1, 1, 1});
  std::vector<OperatorCost>& operators = request.costs.operators;
  operators[3].reads.clear();
  operators[3].input = 8;
  operators[6].reads = {{2, 0, 8}, {5, 0, 8}};
  request.devices = 3;
  return request;
}

std::vector<Job> jobs() {
  std::vector<Job> all;
  all.push_back({"a chain", eight_operators()});
  all.push_back({"three devices", eight_operators()});
  all.back().request.devices = 3;
  all.push_back({"one device", eight_operators()});
  all.back().request.devices = 1;
  all.push_back({"two sizes of microbatches", eight_operators()});
  all.back().request.microbatch_sizes = {1, 2};
  all.push_back({"slow links", eight_operators()});
  all.back().request.costs.links.usual = {.latency = 0.5, .bandwidth = 100};
  all.push_back({"two towers", two_towers()});
  all.push_back({"a builder", eight_operators()});
  all.back().request.builder = "1f1b";
  return all;
}

/// Returns the plans of a planner, or nothing if it refuses the request.
std::vector<Candidate> answer(const PlannerInfo& planner, const PlanRequest& request) {
  return planner.refuses(request) ? std::vector<Candidate>{} : planner.search(request);
}

void check_plan(const PlanRequest& request, const Candidate& plan) {
  std::vector<int> operators;
  for (const std::vector<int>& stage : plan.stages) {
    CHECK_FALSE(stage.empty());
    operators.insert(operators.end(), stage.begin(), stage.end());
  }
  std::ranges::sort(operators);
  std::vector<int> all(request.costs.operators.size());
  std::iota(all.begin(), all.end(), 0);
  CHECK(operators == all);
  CHECK_FALSE(plan.schedule_name.empty());
  CHECK(std::ssize(plan.schedule.rows()) <= request.devices);
  REQUIRE(plan.microbatch_size >= 1);
  CHECK(request.batch % plan.microbatch_size == 0);
  const Layout layout = Layout::of(plan.schedule);
  CHECK(layout.units() * plan.schedule.microbatches() == request.batch / plan.microbatch_size);
  CHECK(layout.ranks() <= request.devices);
  const PlanProposal judged = judge(request, plan);  // refuses a schedule that breaks rules
  CHECK(judged.step >= judged.bound);
  CHECK(judged.bound > 0);
}

bool same(const Candidate& one, const Candidate& other) {
  return one.planner == other.planner && one.stages == other.stages &&
         one.microbatch_size == other.microbatch_size && one.stage_sizes == other.stage_sizes &&
         one.schedule == other.schedule && one.schedule_name == other.schedule_name;
}

TEST_CASE("every planner has a name and a summary of its own", "[scheduler][planners]") {
  std::set<std::string_view> names;
  for (const PlannerInfo& planner : planners_and_example()) {
    CHECK(names.insert(planner.name).second);
    CHECK_FALSE(planner.summary.empty());
  }
  for (const PlannerInfo& planner : planners()) {
    CHECK(&find_planner(planner.name) == &planner);
  }
}

TEST_CASE("every planner answers with valid plans of all operators", "[scheduler][planners]") {
  for (const PlannerInfo& planner : planners_and_example()) {
    int answered = 0;
    for (const Job& job : jobs()) {
      CAPTURE(planner.name, job.name);
      const std::vector<Candidate> plans = answer(planner, job.request);
      for (const Candidate& plan : plans) {
        CHECK(plan.planner == planner.name);
        check_plan(job.request, plan);
      }
      CHECK(plans.empty() == planner.refuses(job.request).has_value());
      answered += plans.empty() ? 0 : 1;
    }
    CAPTURE(planner.name);
    CHECK(answered >= 5);
  }
}

TEST_CASE("every planner gives equal answers to equal requests", "[scheduler][planners]") {
  for (const PlannerInfo& planner : planners_and_example()) {
    for (const Job& job : jobs()) {
      CAPTURE(planner.name, job.name);
      CHECK(std::ranges::equal(answer(planner, job.request), answer(planner, job.request), same));
    }
  }
}

TEST_CASE("every planner ends early with what it has found", "[scheduler][planners]") {
  PlanRequest request = eight_operators();
  request.microbatch_sizes = {1, 2};
  request.goes_on = [](std::string_view /*what*/) { return false; };
  for (const PlannerInfo& planner : planners_and_example()) {
    CAPTURE(planner.name);
    REQUIRE_FALSE(planner.refuses(request).has_value());
    const std::vector<Candidate> plans = planner.search(request);
    REQUIRE_FALSE(plans.empty());
    check_plan(request, plans.front());
  }
}

TEST_CASE("every planner keeps to the memory of devices, within the margin",
          "[scheduler][planners]") {
  for (const PlannerInfo& planner : planners_and_example()) {
    CAPTURE(planner.name);
    PlanRequest request = eight_operators();
    double least = request.memory;
    for (const Candidate& plan : planner.search(request)) {
      least = std::min(least, judge(request, plan).most_bytes());
    }
    request.memory = least * (1 + kMemoryMargin);
    const std::vector<Candidate> plans = planner.search(request);
    REQUIRE_FALSE(plans.empty());
    const double held = judge(request, plans.front()).most_bytes();
    CHECK(held <= request.memory * (1 + kMemoryMargin));

    request.memory = 1;
    CHECK_THAT(refusal([&] { (void)planner.search(request); }, Errc::PlanInfeasible),
               ContainsSubstring("B more") && ContainsSubstring("smaller microbatches"));
  }
}

TEST_CASE("every planner is held to few stages", "[scheduler][planners]") {
  PlanRequest request = eight_operators();
  request.devices = 3;
  for (const int most : {1, 2, 3}) {
    request.most_stages = most;
    for (const PlannerInfo& planner : planners_and_example()) {
      CAPTURE(planner.name, most);
      try {
        for (const Candidate& plan : constrained_search(planner.search, request)) {
          CHECK(std::ssize(plan.stages) <= most);
        }
      } catch (const Error& error) {
        CHECK(error.code() == Errc::PlanInfeasible);
        CHECK_THAT(error.message(), ContainsSubstring(most == 1 ? "at most 1 stage" : "stages"));
      }
    }
  }
}

TEST_CASE("every planner runs a schedule that is given, or says who does",
          "[scheduler][planners]") {
  PlanRequest request = eight_operators();
  request.schedule = one_f_one_b(2, 4);
  for (const PlannerInfo& planner : planners_and_example()) {
    CAPTURE(planner.name);
    if (const auto reason = planner.refuses(request)) {
      CHECK_THAT(*reason,
                 ContainsSubstring(std::string(planner.name)) && ContainsSubstring("pfeife"));
      continue;
    }
    for (const Candidate& plan : planner.search(request)) {
      CHECK(plan.schedule.to_list() == request.schedule->to_list());
      check_plan(request, plan);
    }
  }
}

TEST_CASE("every planner says what a request lacks", "[scheduler][planners][bad-input]") {
  const auto failure_of = [](const PlannerInfo& planner, const PlanRequest& request) {
    const auto reason = planner.refuses(request);
    return reason ? *reason : refusal([&] { (void)planner.search(request); }, Errc::UsageArgument);
  };
  for (const PlannerInfo& planner : planners_and_example()) {
    CAPTURE(planner.name);
    PlanRequest request = eight_operators();
    request.devices = 0;
    CHECK_THAT(failure_of(planner, request), ContainsSubstring("at least one device"));
    request = eight_operators();
    request.batch = 0;
    CHECK_THAT(failure_of(planner, request), ContainsSubstring("at least one sample"));
    request = eight_operators();
    request.microbatch_sizes = {3};
    CHECK_THAT(failure_of(planner, request), ContainsSubstring("do not divide a batch of 4"));
    request = eight_operators();
    request.builder = "1f1v";
    CHECK_THAT(failure_of(planner, request), ContainsSubstring("1f1"));

    request = eight_operators();
    request.devices = 9;
    if (const auto reason = planner.refuses(request)) {
      CHECK_THAT(*reason,
                 ContainsSubstring(std::string(planner.name)) && ContainsSubstring("8") &&
                     ContainsSubstring("9 devices"));
    } else {
      for (const Candidate& plan : planner.search(request)) {
        check_plan(request, plan);
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
