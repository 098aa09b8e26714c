#include "stagecraft/scheduler/planners/fitting_stages.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using test::chain_request;

constexpr int kDevices = 3;

PlanRequest uneven_request(const std::vector<double>& times, const std::vector<double>& speeds) {
  PlanRequest request = chain_request(times);
  request.devices = kDevices;
  request.batch = 8;
  request.builder = "1f1b";
  request.copies_of_stages = false;
  for (int device = 0; device < kDevices; ++device) {
    request.costs.devices[device].speed = speeds[static_cast<std::size_t>(device)];
  }
  return request;
}

/// Returns 1F1B of the stages that end at these operators, with row r on device order[r].
PlanProposal judged(Judge& judge,
                    const PlanRequest& request,
                    const std::vector<int>& ends,
                    const std::vector<int>& order) {
  Candidate candidate{.planner = "test", .stages = consecutive_stages(ends), .microbatch_size = 1};
  candidate.schedule = one_f_one_b(kDevices, request.batch);
  std::vector<Schedule::Row> rows(kDevices);
  for (std::size_t r = 0; r < kDevices; ++r) {
    rows[static_cast<std::size_t>(order[r])] = candidate.schedule.rows()[r];
  }
  candidate.schedule =
      Schedule(candidate.schedule.form(), std::move(rows), candidate.schedule.headers());
  return judge.propose(candidate);
}

/// Returns the shortest step of all cuts and orders of devices; infinite if none fits.
double optimum(const PlanRequest& request) {
  Judge judge(request);
  const auto operators = static_cast<int>(request.costs.operators.size());
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> order(kDevices);
  std::iota(order.begin(), order.end(), 0);
  do {
    for (int first = 1; first < operators - 1; ++first) {
      for (int second = first + 1; second < operators; ++second) {
        const PlanProposal one = judged(judge, request, {first, second, operators}, order);
        best = one.fits ? std::min(best, one.step) : best;
      }
    }
  } while (std::ranges::next_permutation(order).found);
  return best;
}

TEST_CASE("plans for uneven devices are as good as the best of all cuts and orders",
          "[scheduler][planners]") {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> time(0.5, 3);
  for (const std::vector<double>& speeds : std::vector<std::vector<double>>{
           {1, 0.5, 1}, {0.25, 1, 2}, {1, 1, 0.1}, {3, 1, 1}, {1, 0.9, 0.8}}) {
    std::vector<double> times(12);
    std::ranges::generate(times, [&] { return time(random); });
    const PlanRequest request = uneven_request(times, speeds);
    const double best = optimum(request);
    for (const char* planner : {"balance", "pfeife", "graphpipe", "auto"}) {
      CAPTURE(planner, speeds);
      const PlanProposal found = propose(request, planner).front();
      CHECK(found.step <= best * (1 + 2 * kAlike));
      CHECK(found.step >= found.bound);
    }
  }
}

TEST_CASE("a small device gets few bytes, a large one more", "[scheduler][planners]") {
  PlanRequest request = uneven_request(std::vector<double>(12, 1), {1, 1, 1});
  request.memory = 1.2 * (4 * 40 + 3 * 4 * 10 + 3 * 8 + 50);
  const double even = propose(request, "auto").front().step;
  request.costs.devices[1].memory = 1.2 * 150;
  for (const char* planner : {"balance", "capslog", "auto"}) {
    CAPTURE(planner);
    const PlanProposal found = propose(request, planner).front();
    CHECK(found.fits);
    CHECK(found.bytes[1] * (1 + kMemoryMargin) <= 1.2 * 150);
    CHECK(found.memory == std::vector<double>{request.memory, 1.2 * 150, request.memory});
    CHECK(found.step > even);
  }
  request.costs.devices[1].memory = 1.2 * 20;  // one operator needs 40
  CHECK_THROWS_WITH(propose(request, "auto"), Catch::Matchers::ContainsSubstring("on device 1 of"));
}

TEST_CASE("pinned operators and given schedules stay on uneven devices", "[scheduler][planners]") {
  PlanRequest request = uneven_request(std::vector<double>(9, 1), {1, 0.5, 1});
  request.pinned = {{3, 1}, {4, 1}, {5, 1}};
  const PlanProposal pinned = propose(request, "pfeife").front();
  const std::size_t stage = 1;
  CHECK(std::ranges::includes(pinned.candidate.stages[stage], std::vector<int>{3, 4, 5}));

  request.pinned = {};
  request.schedule = one_f_one_b(kDevices, request.batch);
  request.builder.reset();
  const PlanProposal given = propose(request, "auto").front();
  CHECK(given.candidate.schedule == *request.schedule);
  CHECK(given.candidate.stages[1].size() < given.candidate.stages[0].size());
}

TEST_CASE("copies of a pipeline put equally fast devices behind a row", "[scheduler][planners]") {
  PlanRequest request = chain_request(std::vector<double>(12, 1));
  request.devices = 4;
  request.batch = 16;
  request.builder = "1f1b";
  request.costs.devices = {{2, {.speed = 0.5}}, {3, {.speed = 0.5}}};
  const std::vector<PlanProposal> all = propose(request, "auto");
  const auto dp = std::ranges::find_if(all, [](const PlanProposal& p) {
    return p.candidate.schedule_name == "1f1b dp=2" && p.candidate.stages.size() == 2;
  });
  REQUIRE(dp != all.end());
  for (const std::vector<int>& devices : dp->devices_of_row) {
    CHECK((devices[0] < 2) == (devices[1] < 2));
  }
  CHECK(dp->busy[0] * 0.8 < dp->busy[1]);
  CHECK(dp->busy[1] * 0.8 < dp->busy[0]);
}

}  // namespace
}  // namespace stagecraft
