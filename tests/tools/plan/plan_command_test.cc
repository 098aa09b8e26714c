/// Tests `stagecraft plan` as a user sees it: the plan, its files, its comparison with others,
/// wrong usage.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/examples/costs/cost_models.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/costs/operator_list_hash.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tools/plan/plan.h"
#include "stagecraft/tools/plan/report.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using Json = nlohmann::json;

/// Returns costs of a chain of operators with 4 MiB of weights each, one of them as long as four
/// others.
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

TEST_CASE("a plan from noisy costs carries a warning", "[tools][plan][json]") {
  CHECK_FALSE(plan_json({"--devices", "2"}).contains("warnings"));
  Costs noisy = parse_costs(uneven_costs()).costs;
  noisy.device.noise = 1.11;
  const CommandResult text = run_plan({"--devices", "2"}, to_json(noisy));
  CHECK_THAT(text.out, ContainsSubstring("warning: the costs were measured with a noise of 111 %"));
  const Json answer = Json::parse(run_plan({"--devices", "2", "--json"}, to_json(noisy)).out);
  CHECK(answer.at("noise") == 1.11);
  CHECK_THAT(answer.at("warnings").at(0).get<std::string>(), ContainsSubstring("111 %"));
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
    CHECK(first.at("step_seconds") >= first.at("lower_bound_seconds"));
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
  const CommandResult result = run_plan({"--devices",
                                         "2",
                                         "--schedule",
                                         "1f1b",
                                         "--on-device",
                                         "0:0",
                                         "--schedule-out",
                                         schedule,
                                         "--cut-out",
                                         cut});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Schedule read = Schedule::parse(text_of(schedule));
  CHECK(validate(read, read.stage_graph(), {.microbatches = 8}).empty());
  // 12 forwards in all; the best cut of the row into two gives 6 and 6.
  const std::string hash =
      to_string(hash_of_operators(std::vector<std::string>(8, "aten::linear")));
  CHECK(text_of(cut) == "@microbatch-size 2\n@operators " + hash + "\n{0-2}\n{3-7}\n");
}

TEST_CASE("a cut by costs without the names of operators names no model", "[tools][plan]") {
  const TemporaryFolder folder;
  const std::string cut = folder.path() + "/c.txt";
  Costs costs = parse_costs(uneven_costs()).costs;
  costs.operators[3].name.clear();
  REQUIRE(run_plan({"--devices", "2", "--cut-out", cut}, to_json(costs)).exit_code == 0);
  CHECK_THAT(text_of(cut), StartsWith("@microbatch-size ") && !ContainsSubstring("@operators"));
}

TEST_CASE("a step has as many samples as that of the profiled data", "[tools][plan][json]") {
  Costs costs = parse_costs(uneven_costs()).costs;
  costs.batch = 8;
  const CommandResult result = run_plan({"--devices", "2", "--json"}, to_json(costs));
  REQUIRE(result.exit_code == 0);
  const Json answer = Json::parse(result.out);
  CHECK(answer.at("batch") == 8);
  CHECK(answer.at("plans").at(0).at("microbatches") == 4);
}

/// Returns costs of operators that take longer one after the other than side by side, with any cut.
std::string slow_links() {
  Costs costs = parse_costs(uneven_costs()).costs;
  costs.links.usual = {.latency = 1e-5, .bandwidth = 1e6};  // 0.26 s for every value
  for (ParameterCost& parameter : costs.parameters) {
    parameter.bytes = 10;
  }
  return to_json(costs);
}

TEST_CASE("a plan of copies names their devices, and its files train", "[tools][plan]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/s.txt";
  const CommandResult result =
      run_plan({"--devices", "2", "--json", "--top", "1000", "--schedule-out", file}, slow_links());
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Json answer = Json::parse(result.out);
  const Json& best = answer.at("plans").front();
  REQUIRE(best.at("stages").size() == 1);
  CHECK(best.at("stages").front().at("devices") == std::vector{0, 1});
  const Schedule schedule = Schedule::parse(text_of(file));
  CHECK(schedule.headers().places == std::vector<std::vector<Rank>>{{Rank(0), Rank(1)}});
  CHECK(2 * schedule.microbatches() == best.at("microbatches"));
  CHECK(std::ranges::any_of(answer.at("plans"),
                            [](const Json& plan) { return plan.at("stages").size() > 1; }));
  const CommandResult text = run_plan({"--devices", "2", "--why"}, slow_links());
  CHECK_THAT(text.out, ContainsSubstring("0, 1"));
}

TEST_CASE("copies share what they hold if nothing else fits, and the plan says the option",
          "[tools][plan][strategies]") {
  const std::vector<std::string> words{"--devices", "4", "--max-stages", "1", "--memory"};
  const auto with = [&](const char* memory) {
    std::vector<std::string> all = words;
    all.emplace_back(memory);
    return all;
  };
  CHECK(plan_json(with("1G")).at("plans").at(0).at("zero") == 0);
  const Json shared = plan_json(with("43M")).at("plans").at(0);
  CHECK(shared.at("zero") == 1);
  CHECK_THAT(shared.at("schedule").get<std::string>(), EndsWith(" dp=4 zero=1"));
  CHECK_THAT(run_plan(with("43M")).out, ContainsSubstring("train with --zero 1"));
  const CommandResult none = run_plan(with("10M"));
  CHECK(none.exit_code == 1);
  CHECK_THAT(none.err,
             ContainsSubstring("copies that share what they hold (--zero) do not fit either"));
}

TEST_CASE("a given schedule runs in as many copies as the devices can hold", "[tools][plan]") {
  const TemporaryFolder folder;
  const std::string given = folder.path() + "/given.txt", placed = folder.path() + "/placed.txt";
  std::ofstream(given) << to_string(one_f_one_b(2, 4));
  std::ofstream(placed) << "@place 0=0,2 1=1,3\n" << to_string(one_f_one_b(2, 4));
  const Json plan =
      plan_json({"--devices", "4", "--batch", "16", "--schedule", given}).at("plans").at(0);
  CHECK(plan.at("microbatches") == 8);
  CHECK(plan.at("stages").at(0).at("devices") == std::vector{0, 2});
  CHECK(plan.at("stages").at(1).at("devices") == std::vector{1, 3});
  check_message(run_plan({"--devices", "3", "--schedule", given}), 2, {"2 devices", "3"});
  check_message(run_plan({"--devices", "4", "--batch", "12", "--schedule", given}),
                2,
                {"2 copies of the schedule have 8 microbatches", "a batch of 12"});
  check_message(
      run_plan({"--devices", "4", "--schedule", placed}), 2, {"@place", "leave that out"});
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

TEST_CASE("a plan within 1 % of the fastest is told as equally fast", "[tools][plan]") {
  Costs costs = parse_costs(uneven_costs()).costs;
  PlanRequest request{.costs = costs, .devices = 2, .batch = 16};
  const std::vector<PlanProposal> found = propose(request, "balance");
  std::vector<PlanProposal> three(3, found.front());
  three[1].step *= 0.995;
  three[1].candidate.stages.emplace_back();
  three[1].stage_of_cut.push_back(2);
  three[1].devices.push_back(1);
  three[2] = found.back();
  three[2].step = found.front().step * 1.5;
  const std::string text = tools::plan_text(request, three, 3);
  CHECK_THAT(text,
             ContainsSubstring("1 =") && ContainsSubstring("2 =") && !ContainsSubstring("3 =") &&
                 ContainsSubstring("= within 1 % of the fastest"));
  const std::vector<std::string> why = tools::why_sentences(request, three);
  REQUIRE(why.size() == 2);
  CHECK_THAT(why[0],
             ContainsSubstring("0.5 % less: within 1 %, which counts as equally fast") &&
                 ContainsSubstring("the first has fewer stages (1 and 2)"));
  CHECK_THAT(why[1], !ContainsSubstring("equally fast"));
  const Json answer =
      Json::parse(tools::plan_json(request, three, 3, /*why=*/true, /*before=*/nullptr));
  CHECK(answer.at("equally_fast_within") == 0.01);
  CHECK(answer.at("why").at(0).at("equally_fast") == true);
  CHECK(answer.at("why").at(0).at("would_win_if").empty());
  CHECK(answer.at("why").at(1).at("equally_fast") == false);
  three.resize(1);
  CHECK_THAT(tools::plan_text(request, three, 3), !ContainsSubstring("within 1 %"));
}

TEST_CASE("operators stay together, on a device, in as few stages as asked for",
          "[tools][plan][json]") {
  const auto stage_of = [](const Json& plan, int id) {
    for (const Json& stage : plan.at("stages")) {
      const std::vector<int> operators = stage.at("operators");
      if (std::ranges::find(operators, id) != operators.end()) {
        return stage;
      }
    }
    return Json();
  };
  // Plans without this option cut between operators 2 and 3.
  const Json together = plan_json({"--devices", "2", "--together", "1-4", "--top", "1000"});
  for (const Json& plan : together.at("plans")) {
    CHECK(stage_of(plan, 1) == stage_of(plan, 4));
  }
  const Json pinned = plan_json({"--devices", "2", "--on-device", "1:0-1", "--top", "1000"});
  for (const Json& plan : pinned.at("plans")) {
    CHECK(stage_of(plan, 0).at("device") == 1);
    CHECK(stage_of(plan, 1).at("device") == 1);
  }
  const Json few = plan_json({"--devices", "2", "--max-stages", "2", "--top", "1000"});
  for (const Json& plan : few.at("plans")) {
    CHECK(plan.at("stages").size() <= 2);
  }
  const Json one = plan_json({"--devices", "2", "--max-stages", "1", "--top", "1000"});
  for (const Json& plan : one.at("plans")) {
    CHECK(plan.at("stages").size() == 1);
    CHECK(plan.at("stages").front().at("devices") == std::vector{0, 1});
  }
  CHECK(plan_json({"--devices", "2", "--top", "1000"}).at("candidates") > few.at("candidates"));
}

TEST_CASE("a pinned plan runs as its schedule says", "[tools][plan]") {
  const TemporaryFolder folder;
  const std::string schedule = folder.path() + "/s.txt";
  const CommandResult result = run_plan(
      {"--devices", "2", "--on-device", "1:0", "--schedule", "1f1b", "--schedule-out", schedule});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  const Schedule read = Schedule::parse(text_of(schedule));
  CHECK(read.rows()[1].front().tasks().front() ==
        Task{CellKind::Forward, StageId(0), Microbatch(0)});
  CHECK(validate(read, read.stage_graph(), {.microbatches = 8}).empty());
}

TEST_CASE("wrong constraints are refused with what they should be", "[tools][plan][bad-input]") {
  const auto refused = [](const char* option, const char* word) {
    return run_plan({"--devices", "2", option, word});
  };
  check_message(
      refused("--together", "4-3"), 2, {"--together", "3-9", "the costs have 8 operators, 0 to 7"});
  check_message(refused("--together", "20-30"), 2, {"--together", "20-30"});
  check_message(
      refused("--together", "0-500"), 2, {"the costs have 8 operators, 0 to 7", "'0-500'"});
  check_message(refused("--on-device", "0:0-8"), 2, {"the costs have 8 operators", "'0:0-8'"});
  check_message(refused("--on-device", "2:0-1"), 2, {"a device from 0 to 1", "0:3-9"});
  check_message(refused("--on-device", "1"), 2, {"--on-device"});
  check_message(refused("--time-limit", "0"), 2, {"--time-limit"});
  check_message(refused("--devices", "65537"), 2, {"--devices"});
  const CommandResult few = run_plan({"--devices",
                                      "2",
                                      "--max-stages",
                                      "1",
                                      "--planner",
                                      "balance",
                                      "--batch",
                                      "7",
                                      "--microbatch-sizes",
                                      "7"});
  CHECK(few.exit_code == 2);
  CHECK_THAT(few.err, ContainsSubstring("at most 1 are allowed for 2 devices"));
  check_message(run_plan({"--devices", "2", "--max-stages", "1", "--on-device", "0:0"}),
                2,
                {"at most 1 stage ", "plan for 1 device,"});
}

TEST_CASE("a schedule that is neither a name nor a file is told with all names",
          "[tools][plan][bad-input]") {
  check_message(run_plan({"--devices", "2", "--schedule", "1f1v"}),
                2,
                {"--schedule expects", "'1f1v'", "did you mean 1f1b?", "gpipe", "zb-v"});
  check_message(
      run_plan({"--devices", "2", "--schedule", "/none/own.sched"}), 2, {"'/none/own.sched'"});
}

TEST_CASE("operators of one stage are on one device", "[tools][plan][bad-input]") {
  check_message(run_plan({"--devices", "2", "--on-device", "0:0-4", "--on-device", "1:3-6"}),
                2,
                {"--on-device 0:0-4 and --on-device 1:3-6 put operators 3, 4 on devices 0 and 1"});
  check_message(run_plan({"--devices", "2", "--on-device", "0:0-1", "--on-device", "1:1"}),
                2,
                {"--on-device 0:0-1 and --on-device 1:1 put operator 1 on"});
  check_message(
      run_plan(
          {"--devices", "2", "--together", "1-4", "--on-device", "0:0-1", "--on-device", "1:4-5"}),
      2,
      {"--on-device 0:0-1 and --on-device 1:4-5", "operators 1 and 4 stay in one stage"});
  // The same device twice is no contradiction: one stage then has the operators of both.
  const Json twice = plan_json({"--devices", "2", "--on-device", "1:0-1", "--on-device", "1:1-2"});
  CHECK(twice.at("plans").at(0).at("stages").at(0).at("device") == 1);
}

TEST_CASE("a search that may take no time ends with the first plan, and says so", "[tools][plan]") {
  const Json all = plan_json({"--devices", "2", "--top", "1000"});
  const CommandResult result =
      run_plan({"--devices", "2", "--time-limit", "1e-9", "--top", "1000", "--json"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.err, ContainsSubstring("a larger --time-limit may find a better plan"));
  CHECK(Json::parse(result.out).at("candidates") == 1);
  CHECK(all.at("candidates") > 1);
  CHECK_THAT(result.err, !ContainsSubstring("--what-if"));
  const CommandResult changed =
      run_plan({"--devices", "2", "--time-limit", "1e-9", "--what-if", "link=0-1:10x", "--json"});
  CHECK_THAT(changed.err,
             ContainsSubstring("the search without --what-if ended after 5e-10 s") &&
                 ContainsSubstring("the search with --what-if ended after 1e-09 s"));
}

TEST_CASE("a terminal shows what is searched, and nothing of it in the end",
          "[tools][plan][progress]") {
  const CommandResult result =
      run_in_test(&tools::plan, {"-", "--devices", "2"}, uneven_costs(), {.terminal = true});
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.err,
             StartsWith("\rplanning, 0 s: balance begins\x1b[K") &&
                 ContainsSubstring("pfeife loops=1") && EndsWith("\r\x1b[K"));
}

TEST_CASE("a changed link or memory is planned for", "[tools][plan][json]") {
  const double usual = plan_json({"--devices", "2"}).at("plans").at(0).at("step_seconds");
  const Json slow = plan_json({"--devices", "2", "--what-if", "link=0-1:0.001x"});
  CHECK(slow.at("plans").at(0).at("step_seconds") > usual);
  const Json tight = plan_json({"--devices", "2", "--what-if", "memory=30M"});
  CHECK(tight.at("plans").at(0).at("bytes").at(0) <= 30.0 * (1 << 20));
}

TEST_CASE("what a change of --what-if changes is shown before and after", "[tools][plan][json]") {
  const Json usual = plan_json({"--devices", "2"});
  CHECK_FALSE(usual.contains("before"));
  const Json slow = plan_json({"--devices", "2", "--what-if", "link=0-1:0.001x"});
  CHECK(slow.at("before") == usual.at("plans").at(0));
  for (const Json* plan : {&slow.at("before"), &slow.at("plans").at(0)}) {
    CHECK(plan->at("bubble_fraction") >= 0);
    CHECK(plan->at("bubble_fraction") < 1);
  }
  const CommandResult text = run_plan({"--devices", "2", "--what-if", "link=0-1:0.001x"});
  CAPTURE(text.out, text.err);
  CHECK(std::regex_search(text.out, std::regex("\n--what-if +before +after\n")));
  for (const Json& plan : {usual.at("plans").at(0), slow.at("plans").at(0)}) {
    CHECK_THAT(text.out, ContainsSubstring(tools::time_text(plan.at("step_seconds"))));
  }
  CHECK(std::regex_search(text.out, std::regex("\nstep .* \\+[0-9.]+ %\n")));
  CHECK(std::regex_search(text.out, std::regex("\nbubble +[0-9.]+ % +[0-9.]+ %\n")));
  CHECK_THAT(text.out, ContainsSubstring("\ndevice 0 ") && ContainsSubstring("\ndevice 1 "));
  // Without the change no plan fits.
  const std::vector<std::string> more{"--devices", "2", "--memory", "1M", "--what-if", "memory=1G"};
  CHECK(plan_json(more).at("before") == nullptr);
  CHECK_THAT(run_plan(more).out, ContainsSubstring("no plan fits before\n"));
}

/// Runs the command with a file of orders, for a plan that keeps them.
CommandResult run_with_orders(const std::string& orders, std::vector<std::string> words) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/orders.txt";
  std::ofstream(path) << orders;
  words.insert(words.end(), {"--barriers", path});
  return run_plan(std::move(words));
}

TEST_CASE("barriers and shared channels count for every planner", "[tools][plan][json]") {
  for (const char* planner : {"balance", "pfeife", "capslog"}) {
    CAPTURE(planner);
    const auto step_of = [&](std::vector<std::string> words) {
      words.insert(words.end(),
                   {"--devices",
                    "2",
                    "--planner",
                    planner,
                    "--schedule",
                    "gpipe",
                    "--what-if",
                    "link=0-1:0.01x"});
      return plan_json(std::move(words)).at("plans").at(0).at("step_seconds").get<double>();
    };
    const double free = step_of({});
    CHECK(step_of({"--channels", "free"}) == free);
    CHECK(step_of({"--barriers", "phases"}) > free);
    CHECK(step_of({"--channels", "shared"}) >= free);
    CHECK(step_of({"--barriers", "phases", "--channels", "shared"}) > free);
  }
}

TEST_CASE("a user's orders are part of the prediction, and the plan says so", "[tools][plan]") {
  const CommandResult result =
      run_with_orders("1B7 < 0B0  # stage 0 goes back last\n",
                      {"--devices", "2", "--batch", "16", "--microbatch-sizes", "2"});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("`train` runs the schedule without them"));
}

TEST_CASE("wrong barriers are refused with what they should be", "[tools][plan][bad-input]") {
  check_message(run_with_orders("0F0 < 0F1\n0F0 - 0F1\n", {"--devices", "2"}),
                2,
                {"--barriers", "orders.txt", "line 2, column 1", "0F0>1 < 0F1"});
  check_message(run_with_orders("", {"--devices", "2"}), 2, {"has no order"});
  const CommandResult unknown = run_with_orders("0F0 < 0F99\n", {"--devices", "2"});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("the order 0F0 < 0F99 names 0F99"));
  for (const char* planner : {"balance: ", "pfeife: ", "graphpipe: ", "capslog: "}) {
    CHECK_THAT(unknown.err, ContainsSubstring(planner));
  }
  const CommandResult circle = run_with_orders("1F0 < 0F0\n", {"--devices", "2"});
  CHECK(circle.exit_code == 2);
  CHECK_THAT(circle.err,
             ContainsSubstring("the order 1F0 < 0F0 cannot be kept: 1F0 waits for 0F0"));
  check_message(run_plan({"--devices", "2", "--barriers", "none.txt"}), 2, {"none.txt"});
  check_message(run_plan({"--devices", "2", "--channels", "half"}), 2, {"--channels", "shared"});
}

TEST_CASE("a schedule of two copies is cut once, and holds the weights twice",
          "[tools][plan][json]") {
  for (const char* name : {"chimera", "dualpipe"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const std::string schedule = folder.path() + "/s.txt", cut = folder.path() + "/c.txt";
    const Json plan =
        plan_json(
            {"--devices", "2", "--schedule", name, "--schedule-out", schedule, "--cut-out", cut})
            .at("plans")
            .at(0);
    REQUIRE(plan.at("stages").size() == 2);
    CHECK(plan.at("stages").at(0).at("devices") == Json{0, 1});
    CHECK(plan.at("stages").at(1).at("devices") == Json{1, 0});
    for (const double bytes : plan.at("bytes")) {
      CHECK(bytes >= 8.0 * (4 << 20));  // of all operators, on both devices
    }
    const Schedule read = Schedule::parse(text_of(schedule));
    CHECK(read.stage_graph().replicas() == 2);
    CHECK(validate(read, read.stage_graph(), {.microbatches = 8}).empty());
    CHECK_THAT(text_of(cut),
               StartsWith("@microbatch-size 2\n@operators 8 ") && ContainsSubstring("\n{0") &&
                   EndsWith("7}\n"));
    // The written file gives the same plan as the schedule's name.
    const Json again = plan_json({"--devices", "2", "--schedule", schedule}).at("plans").at(0);
    CHECK(again.at("step_seconds") == plan.at("step_seconds"));
  }
}

TEST_CASE("a plan of two copies is told with both devices, and on a page", "[tools][plan]") {
  const TemporaryFolder folder;
  const std::string page = folder.path() + "/plan.html";
  const CommandResult result =
      run_plan({"--devices", "2", "--schedule", "chimera", "--html", page});
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("0, 1"));
  CHECK_THAT(text_of(page), ContainsSubstring("stage 3"));
}

TEST_CASE("a schedule made for costs is made for those of the stages", "[tools][plan][json]") {
  const auto step_of = [](const char* name) {
    return plan_json({"--devices", "2", "--schedule", name})
        .at("plans")
        .at(0)
        .at("step_seconds")
        .get<double>();
  };
  CHECK(step_of("zb-auto") <= step_of("zb-h1") * 1.001);
}

TEST_CASE("a schedule for stage graphs is planned by those who know graphs",
          "[tools][plan][json]") {
  for (const char* name : {"dag-1f1b", "dag-gpipe"}) {
    CAPTURE(name);
    const Json answer = plan_json({"--devices", "2", "--schedule", name});
    CHECK(answer.at("plans").at(0).at("fits") == true);
  }
}

TEST_CASE("if no plan fits, the least memory of any cut is printed, and the exit status is 1",
          "[tools][plan][bad-input]") {
  const CommandResult result = run_plan({"--devices", "2", "--memory", "1M"});
  CAPTURE(result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(
      result.err,
      ContainsSubstring("no plan fits the devices") && ContainsSubstring("use more devices"));
  std::smatch least;
  REQUIRE(std::regex_search(result.err,
                            least,
                            std::regex("the one that lacks least needs ((\\S+) MiB), on device "
                                       "(\\d) of \\S+: (\\S+) MiB more than there are")));
  CHECK(std::abs(std::stod(least[4]) - (std::stod(least[2]) - 1)) < 0.11);
  // With the named memory a plan fits, and its named device is the fullest one. With less, none
  // does.
  const Json plan = plan_json({"--devices", "2", "--memory", least[1].str()}).at("plans").at(0);
  const std::vector<double> bytes = plan.at("bytes");
  CHECK(std::ranges::max_element(bytes) - bytes.begin() == std::stoi(least[3]));
  const double needed = *std::ranges::max_element(bytes) * (1 + kMemoryMargin);
  CHECK(enough_bytes_text(needed) == least[1].str());
  CHECK(run_plan({"--devices", "2", "--memory", fmt::format("{:.0f}", needed - 2)}).exit_code == 1);
}

TEST_CASE("operators that stay together leave too few for the devices",
          "[tools][plan][bad-input]") {
  for (const char* planner : {"balance", "pfeife", "capslog"}) {
    const CommandResult result =
        run_plan({"--devices", "2", "--on-device", "0:0-7", "--planner", planner});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err,
               ContainsSubstring(fmt::format("{} gives every device at least one operator; found 1 "
                                             "that can be separated, for 2 devices",
                                             planner)));
  }
  // graphpipe leaves a device without a stage; without a pin, both devices have a copy.
  const Json pinned = plan_json({"--devices", "2", "--on-device", "0:0-7"}).at("plans").at(0);
  CHECK(pinned.at("stages").at(0).at("devices") == std::vector{0});
  const Json copies = plan_json({"--devices", "2", "--together", "0-7"}).at("plans").at(0);
  CHECK(copies.at("stages").at(0).at("devices") == std::vector{0, 1});
}

TEST_CASE("a time limit ends the search for a large model, with a plan", "[tools][plan]") {
  const CommandResult result = run_plan({"--devices", "8", "--batch", "16", "--time-limit", "1"},
                                        to_json(examples::skip_chain()));
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, ContainsSubstring("the search ended after 1 s"));
}

TEST_CASE("wrong words are refused with what they should be", "[tools][plan][bad-input]") {
  check_message(run_plan({}), 2, {"--devices"});
  check_message(run_plan({"--devices", "0"}), 2, {"--devices expects a whole number from 1"});
  check_message(run_plan({"--devices", "2", "--planner", "pfeif"}), 2, {"did you mean pfeife"});
  check_message(run_plan({"--devices", "2", "--memory", "much"}),
                2,
                {"--memory expects a number of bytes from 1 to 1024T"});
  for (const char* wrong : {"4X", "-1G", "1e30G", ""}) {
    check_message(run_plan({"--devices", "2", "--memory", wrong}),
                  2,
                  {"--memory expects a number of bytes", fmt::format("found '{}'", wrong)});
    check_message(run_plan({"--devices", "2", "--what-if", fmt::format("memory={}", wrong)}),
                  2,
                  {"--what-if memory= expects a number of bytes", wrong});
  }
  check_message(run_plan({"--devices", "2", "--memory", "-1"}), 2, {"--memory"});
  for (const char* wrong : {"2 4", "2;4", "2x4", "0", ""}) {
    check_message(run_plan({"--devices", "2", "--microbatch-sizes", wrong}),
                  2,
                  {"--microbatch-sizes expects a whole number from 1"});
  }
  check_message(run_plan({"--devices", "2", "--batch", "two"}), 2, {"--batch expects"});
  check_message(run_plan({"--devices", "2", "--batch", "3"}), 2, {"divides a batch of 3"});
  check_message(run_plan({"--devices", "2", "--what-if", "link=0-1"}), 2, {"link=0-1:10x"});
  check_message(
      run_plan({"--devices", "2", "--what-if", "link=0-7:2x"}), 2, {"devices from 0 to 1"});
  check_message(run_plan({"--devices", "2", "--what-if", "speed=2"}), 2, {"memory=4G"});
  check_message(run_plan({"--devices", "2"}, R"({"version": 1})"), 2, {"stagecraft profile"});
  check_message(run_plan({"--devices", "2", "--schedule", "none.txt"}), 2, {"none.txt"});
}

}  // namespace
}  // namespace stagecraft::tests
