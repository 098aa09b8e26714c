/// `stagecraft plan` as a user sees it: the plan, its files, what it says of others, wrong usage.
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/formats/costs_json.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/tools/command_run.h"
#include "stagecraft/tools/plan/plan.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

/// A chain of operators, one of them as long as four others, with 4 MiB of weights each.
std::string uneven_costs() {
  constexpr double kTimes[] = {1, 1, 4, 1, 1, 1, 1, 2};
  Costs costs;
  costs.samples = 2;
  for (int i = 0; i < 8; ++i) {
    const std::string name = fmt::format("layer{}.weight", i);
    OperatorCost op{.id = i,
                    .name = "aten::linear",
                    .forward = kTimes[i] * 1e-3,
                    .backward_input = kTimes[i] * 1e-3,
                    .backward_weight = kTimes[i] * 1e-3,
                    .update = 1e-4,
                    .kept = 1 << 20,
                    .output = 1 << 18,
                    .parameters = {name}};
    if (i > 0) {
      op.reads = {{i - 1, 0, 1 << 18}};
    }
    costs.operators.push_back(op);
    costs.parameters.push_back({name, 1 << 20, 4 << 20});
  }
  costs.links.usual = {.latency = 1e-5, .bandwidth = 1e10};
  return to_json(costs);
}

CommandResult run_plan(std::vector<std::string> words, const std::string& costs = uneven_costs()) {
  words.insert(words.begin(), "-");
  return run_in_test(&tools::plan, words, costs);
}

Json plan_json(std::vector<std::string> words) {
  words.emplace_back("--json");
  const CommandResult result = run_plan(std::move(words));
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("a plan says cut, schedule, time, memory, and what binds", "[tools][plan]") {
  const CommandResult result = run_plan({"--devices", "2"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  for (const char* part : {"2 devices, a step of 16 samples",
                           "microbatches",
                           "holds at most",
                           "what binds",
                           "no plan of these devices is below"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
}

TEST_CASE("every planner answers for programs, and auto is the best of them",
          "[tools][plan][json]") {
  double best = 1e9;
  for (const char* planner : {"balance", "pfeife", "graphpipe", "capslog"}) {
    CAPTURE(planner);
    const Json answer = plan_json({"--devices", "2", "--planner", planner});
    const Json& first = answer.at("plans").at(0);
    CHECK(first.at("planner") == planner);
    CHECK(first.at("fits") == true);
    CHECK(first.at("step_seconds") >= first.at("lower_bound"));
    best = std::min(best, first.at("step_seconds").get<double>());
  }
  const Json all = plan_json({"--devices", "2", "--top", "1000"});
  CHECK(all.at("plans").at(0).at("step_seconds") <= best * 1.01);
  CHECK(all.at("plans").size() == all.at("candidates"));
  double before = 0;
  for (std::size_t i = 1; i < all.at("plans").size(); ++i) {  // the first is one of the fastest
    const Json& one = all.at("plans").at(i);
    if (one.at("fits")) {
      CHECK(one.at("step_seconds") >= before);
      before = one.at("step_seconds");
    }
  }
}

TEST_CASE("schedule and cut come out as files that others read", "[tools][plan]") {
  const TemporaryFolder folder;
  const std::string schedule = folder.path() + "/s.txt", cut = folder.path() + "/c.txt";
  const CommandResult result = run_plan(
      {"--devices", "2", "--schedule", "1f1b", "--schedule-out", schedule, "--cut-out", cut});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Schedule read = Schedule::parse(text_of(schedule));
  CHECK(validate(read, read.stage_graph(), {.microbatches = 8}).empty());
  // 12 forwards in all; the best two parts of the row are 6 and 6.
  CHECK(text_of(cut) == "{0-2}\n{3-7}\n");
}

TEST_CASE("why says what would make another plan the better one", "[tools][plan]") {
  const CommandResult result = run_plan({"--devices", "2", "--why"});
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring(" takes "));
  const Json answer = plan_json({"--devices", "2", "--why", "--top", "1000"});
  for (const Json& reason : answer.at("why")) {
    const auto plan = reason.at("plan").get<std::size_t>();
    CHECK(reason.at("step_seconds") == answer.at("plans").at(plan).at("step_seconds"));
  }
}

TEST_CASE("a changed link or memory is planned for", "[tools][plan][json]") {
  const double usual = plan_json({"--devices", "2"}).at("plans").at(0).at("step_seconds");
  const Json slow = plan_json({"--devices", "2", "--what-if", "link=0-1:0.001x"});
  CHECK(slow.at("plans").at(0).at("step_seconds") > usual);
  const Json tight = plan_json({"--devices", "2", "--what-if", "memory=30M"});
  CHECK(tight.at("plans").at(0).at("bytes").at(0) <= 30.0 * (1 << 20));
}

TEST_CASE("what fits nowhere is said with the bytes that lack, and ends with 1",
          "[tools][plan][bad-input]") {
  const CommandResult result = run_plan({"--devices", "2", "--memory", "1M"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err, ContainsSubstring("no plan fits the devices"));
  CHECK_THAT(result.err, ContainsSubstring("use more devices"));
}

TEST_CASE("wrong words are refused with what they should be", "[tools][plan][bad-input]") {
  check_message(run_plan({}), 2, {"--devices"});
  check_message(run_plan({"--devices", "0"}), 2, {"a device at least"});
  check_message(run_plan({"--devices", "2", "--planner", "pfeif"}), 2, {"did you mean pfeife"});
  check_message(run_plan({"--devices", "2", "--memory", "much"}), 2, {"--memory", "2G"});
  check_message(run_plan({"--devices", "2", "--memory", "-1"}), 2, {"--memory"});
  check_message(run_plan({"--devices", "2", "--batch", "3"}), 2, {"divides a batch of 3"});
  check_message(run_plan({"--devices", "2", "--what-if", "link=0-1"}), 2, {"link=0-1:10x"});
  check_message(run_plan({"--devices", "2", "--what-if", "link=0-7:2x"}), 2, {"devices 0 to 1"});
  check_message(run_plan({"--devices", "2", "--what-if", "speed=2"}), 2, {"memory=2G"});
  check_message(run_plan({"--devices", "2"}, R"({"version": 1})"), 2, {"stagecraft profile"});
  check_message(run_plan({"--devices", "2", "--schedule", "none.txt"}), 2, {"none.txt"});
}

}  // namespace
}  // namespace stagecraft::tests
