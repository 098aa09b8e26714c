#include "stagecraft/scheduler/planners/proposal.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/costs/shared_bytes.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/scheduler/planners/registry.h"
#include "stagecraft/scheduler/planners/request/costs_of_copies.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/scheduler/planners/plan_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::chain_request;
using test::two_stages;

TEST_CASE("a candidate is judged by the simulator, with the update", "[scheduler][planners]") {
  const PlanRequest request = chain_request({1, 1, 1, 1});
  const PlanProposal even = judge(request, two_stages(2, 4));
  // With F = 2 and B = 4 for each stage and 4 microbatches, 1F1B takes (4 + 1) x 6, and updates 2.
  CHECK(even.microbatches == 4);
  CHECK(even.step == 30 + 2);
  CHECK(even.update == 2);
  // Stage 0 runs one forward ahead, and its result waits at stage 1.
  CHECK(even.bytes == std::vector<double>{2 * 40 + 2 * (2 * 10 + 8), 2 * 40 + 2 * 10 + 8 + 8});
  CHECK(even.early == std::vector<double>{0, 8});
  CHECK(even.fits);
  CHECK(even.devices == std::vector{0, 1});
  CHECK(even.graph.is_chain());
  CHECK(even.busy == std::vector<double>{24, 24});
  CHECK(even.bound == 24);
  CHECK(even.gap() == 32.0 / 24 - 1);
  CHECK(to_string(even.binds) == "device 0 computes 75 % of the step");
}

TEST_CASE("an uneven cut takes longer, and its full device is named", "[scheduler][planners]") {
  const PlanRequest request = chain_request({1, 1, 1, 1});
  const PlanProposal uneven = judge(request, two_stages(3, 4));
  CHECK(uneven.step > judge(request, two_stages(2, 4)).step);
  CHECK(uneven.fullest() == 0);
  CHECK(uneven.binds.from == 0);
}

TEST_CASE("tasks and steps take time beside operators", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  const double without = judge(request, two_stages(2, 4)).step;
  request.costs.device.task = 0.5;
  request.costs.device.step = 3;
  // The critical path is five forwards and five backwards.
  CHECK(judge(request, two_stages(2, 4)).step == without + 10 * 0.5 + 3);
}

TEST_CASE(
    "halves of a backward take longer than the whole, but for the first stage, whose W does all",
    "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.costs.device.split = 1.5;
  request.costs.device.task = 0.5;
  const PlanProposal plan = judge(request, two_stages(2, 4));
  const Durations &first = plan.costs.stages.each[0], &last = plan.costs.stages.each[1];
  CHECK(first.backward_input == 0);  // nor the time outside of operators
  CHECK(first.backward_weight == first.backward);
  CHECK(last.backward_input + last.backward_weight - 2 * 0.5 == 1.5 * (last.backward - 0.5));
}

TEST_CASE("the input half of a stage without inputs waits for nobody, as in simulate()",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.batch = 2;
  Candidate halves = two_stages(2, 2);
  halves.schedule = Schedule::parse("@form list\n0F0 0I0 0F1 0I1 0W0 0W1\n1F0 1B0 1F1 1B1");
  const PlanProposal plan = judge(request, halves);
  CHECK_FALSE(plan.graph.needs_input_grad(StageId(0)));
  // Stage 0 starts its second forward at once, and its W take the whole backward.
  CHECK(plan.step == 2 + 2 * (2 + 4) + 4 + 2);
  CHECK(plan.busy[0] == 2 * (2 + 4));
}

TEST_CASE("gradients that wait between halves of a backward are held", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  Candidate halves = two_stages(2, 4);
  const std::vector<double> whole = judge(request, halves).bytes;
  halves.schedule = zb_h1(2, 4);
  const double released = judge(request, halves).bytes[1];
  request.costs.device.split_bytes = 1.5;
  // Two microbatches at a time are between their halves: each holds half of 2 x 10 + 8 more.
  CHECK(judge(request, halves).bytes[1] == released + 2 * 14);
  CHECK(judge(request, two_stages(2, 4)).bytes == whole);
}

TEST_CASE("a slow link binds where it carries most of the step", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.batch = 1;
  request.costs.links.usual = {.latency = 100};
  const PlanProposal slow = judge(request, two_stages(2, 1));
  CHECK(slow.binds.kind == Bottleneck::Kind::Link);
  CHECK_THAT(to_string(slow.binds), ContainsSubstring("the link 0-1"));
}

TEST_CASE("copies of a stage divide its microbatches and add a sum of gradients",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.devices = 3;
  request.costs.links.sums = {.latency = 0.5, .bandwidth = 10};
  Candidate candidate = two_stages(2, 2);
  const Schedule& one = candidate.schedule;
  candidate.schedule =
      Schedule(one.form(), one.rows(), {.places = {{Rank(0), Rank(1)}, {Rank(2)}}});
  const PlanProposal made = judge(request, candidate);
  CHECK(made.microbatches == 4);
  CHECK(made.devices_of_row == std::vector<std::vector<int>>{{0, 1}, {2}});
  // F and B take 2 and 4, on device 2 for two microbatches at a time: 4 and 8. Its four tasks begin
  // at 2; the last B of the others ends 4 later. 20 bytes of gradients need 2 rounds of 0.5 + 10 /
  // 10.
  CHECK(made.costs.stages.each[0].update == 2 + 2 * 1.5);
  CHECK(made.costs.stages.each[1].update == 2);
  CHECK(made.step == 2 + 2 * (4 + 8) + 4 + 5);
  CHECK(made.busy == std::vector<double>{12, 24});
  CHECK(made.bytes[0] == 2 * 40 + 2 * (2 * 10 + 8));
  CHECK(made.bytes[1] - made.early[1] == 2 * 40 + 2 * (2 * 10 + 8));
}

TEST_CASE("copies on shared processors are slowed down together", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  Candidate candidate = two_stages(4, 2);
  candidate.stages.pop_back();
  candidate.schedule = in_copies(one_f_one_b(1, 2), 2);
  const double apart = judge(request, candidate).step;
  CHECK(apart == 2 * (4 + 8) + 4);
  request.costs.device.processors = 1;
  CHECK(judge(request, candidate).step == 2 * 2 * (4 + 8) + 4);
}

TEST_CASE("stages that share a parameter have equally many copies", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.devices = 3;
  request.costs.operators[3].parameters = {"0"};
  Candidate candidate = two_stages(2, 2);
  const Schedule one = candidate.schedule;
  candidate.schedule =
      Schedule(one.form(), one.rows(), {.places = {{Rank(0), Rank(1)}, {Rank(2)}}});
  CHECK_THAT(refusal([&] { (void)judge(request, candidate); }, Errc::UsageArgument),
             ContainsSubstring("stages 0 and 1 share 0"));
}

TEST_CASE("a sum is as slow as the slowest link of its devices", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.costs.links.usual = {.latency = 100};
  Candidate candidate = two_stages(4, 2);
  candidate.stages.pop_back();
  candidate.schedule = in_copies(one_f_one_b(1, 2), 2);
  CHECK(judge(request, candidate).update == 4 + 2 * 100);
  request.costs.links.each = {{{0, 1}, {.latency = 1}}, {{1, 0}, {.latency = 2}}};
  CHECK(judge(request, candidate).update == 4 + 2 * 2);
}

TEST_CASE("links between rows are the slowest of those that carry a unit",
          "[scheduler][planners]") {
  const Schedule copies = in_copies(one_f_one_b(2, 2), 2);
  const LinkCosts links{.usual = {.latency = 1},
                        .each = {{{0, 1}, {.latency = 2}},
                                 {{2, 3}, {.latency = 0.5, .bandwidth = 10}},
                                 {{0, 3}, {.latency = 100}}}};
  const LinkCosts rows = links_of_rows(links, Layout::of(copies));
  CHECK(rows.each.at({0, 1}) == Link{.latency = 2, .bandwidth = 10});
  CHECK(rows.each.at({1, 0}) == Link{.latency = 1});
}

TEST_CASE("a plan has copies of the pipeline where transfers are dear", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.devices = 4;
  request.costs.links.usual = {.latency = 1};
  request.costs.links.sums = {.latency = 1e-3};
  const PlanProposal best = propose(request, "auto").front();
  CHECK(best.candidate.stages.size() == 1);
  CHECK(best.microbatches == 4);
  CHECK(best.devices_of_row == std::vector<std::vector<int>>{{0, 1, 2, 3}});
  CHECK(best.step < 4 + 8 + 5);  // of one microbatch on each device, and the update
  request.costs.links.usual = {};
  request.costs.links.sums = {.latency = 100};
  CHECK(propose(request, "auto").front().devices_of_row.size() > 1);
  CHECK(Layout::of(propose(request, "auto").front().candidate.schedule).is_single());
}

TEST_CASE("copies that each hold the whole model need its memory", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  request.costs.links.usual = {.latency = 100};
  const double whole = 4 * (40 + 10) + 8;
  request.memory = whole * (1 + kMemoryMargin) - 1;
  for (const PlanProposal& made : propose(request, "auto")) {
    CHECK((!made.fits || made.candidate.stages.size() > 1));
  }
}

/// One operator that no cut divides, on four devices.
PlanRequest indivisible_request() {
  PlanRequest request = chain_request({1});
  request.devices = 4;
  request.may_share = true;
  request.costs.parameters.front() = {"0", 40 * kSharedBucket, 160 * kSharedBucket};
  return request;
}

TEST_CASE("if nothing fits, the lowest level at which copies fit is proposed",
          "[scheduler][planners][strategies]") {
  PlanRequest request = indivisible_request();
  const auto [buckets, level] = GENERATE(table<double, Sharing>(
      {{170, Sharing::Nothing}, {80, Sharing::Gradients}, {50, Sharing::Weights}}));
  request.memory = buckets * kSharedBucket * (1 + kMemoryMargin);
  const PlanProposal best = propose(request, "auto").front();
  CHECK(best.fits);
  CHECK(best.candidate.sharing == level);
  CHECK(best.candidate.schedule_name.ends_with(fmt::format(" zero={}", static_cast<int>(level))) ==
        (level != Sharing::Nothing));
  request.memory = 40 * kSharedBucket;
  CHECK_THAT(refusal([&] { (void)propose(request, "auto"); }, Errc::PlanInfeasible),
             ContainsSubstring("copies that share what they hold (--zero) do not fit either"));
  request.may_share = false;
  request.memory = 80 * kSharedBucket * (1 + kMemoryMargin);
  CHECK_THAT(refusal([&] { (void)propose(request, "auto"); }, Errc::PlanInfeasible),
             !ContainsSubstring("--zero"));
}

TEST_CASE("levels with rounds hold less and take their time", "[scheduler][planners][strategies]") {
  PlanRequest request = indivisible_request();
  Candidate candidate{.planner = "test", .stages = {{0}}, .microbatch_size = 1};
  candidate.schedule = in_copies(one_f_one_b(1, 2), 2);
  const auto judged = [&](Sharing sharing) {
    candidate.sharing = sharing;
    return judge(request, candidate);
  };
  const PlanProposal whole = judged(Sharing::Nothing);
  const PlanProposal states = judged(Sharing::States);
  const PlanProposal gradients = judged(Sharing::Gradients);
  const PlanProposal weights = judged(Sharing::Weights);
  CHECK(whole.bytes[0] - states.bytes[0] == 40 * kSharedBucket);
  // Two buckets of gradients are borrowed, or of both. A sum of two copies holds 1.5 times its
  // bytes, and is of one bucket.
  CHECK(states.bytes[0] - gradients.bytes[0] == (20 - 2 + 39 * 1.5) * kSharedBucket);
  CHECK(gradients.bytes[0] - weights.bytes[0] == (20 - 2) * kSharedBucket);
  CHECK(weights.step == whole.step);  // transfers take no time
  request.costs.links.usual = {.latency = 0, .bandwidth = kSharedBucket};
  CHECK(judged(Sharing::States).step == judged(Sharing::Nothing).step);
  CHECK(judged(Sharing::Gradients).step > judged(Sharing::States).step);
  CHECK(judged(Sharing::Weights).step > judged(Sharing::Gradients).step);
}

TEST_CASE("of a schedule of two copies each device holds both, and they add up gradients",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 1, 1, 1});
  Candidate candidate = two_stages(2, 4);
  candidate.schedule = chimera(2, 4);
  const PlanProposal made = judge(request, candidate);
  CHECK(made.graph.size() == 4);
  CHECK(made.graph.replicas() == 2);
  CHECK(made.stage_of_cut == std::vector{0, 1, 0, 1});
  CHECK(made.devices == std::vector{0, 1, 1, 0});
  Costs stages;
  stages.stages.each.assign(4, {.forward = 2, .backward = 4});
  const double makespan = simulate(candidate.schedule, made.graph, stages).makespan;
  CHECK(made.step == makespan + 2 * 2);  // each device updates two stages
  for (const double bytes : made.bytes) {
    CHECK(bytes >= 4 * 40);
  }
  // 20 bytes of gradients between two replicas need 2 rounds of 0.5 + 10 / 10 for each stage.
  request.costs.links.usual = {.latency = 0.5, .bandwidth = 10};
  CHECK(judge(request, candidate).update == 2 * (2 + 2 * 1.5));
  CHECK(made.costs.links.edge_bytes.at({2, 3}) == made.costs.links.edge_bytes.at({0, 1}));
}

TEST_CASE("the best cut for a schedule of two copies is found", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 2, 1, 3, 1, 1, 2, 1});
  request.builder = GENERATE("chimera", "dualpipe");
  const PlanProposal best = propose(request, "auto").front();
  CHECK(best.candidate.planner == "pfeife");
  for (int first = 1; first < 8; ++first) {
    Candidate other = best.candidate;
    other.stages = {{}, {}};
    for (int op = 0; op < 8; ++op) {
      other.stages[op < first ? 0 : 1].push_back(op);
    }
    CHECK(judge(request, other).step >= best.step);
  }
}

TEST_CASE("copies in a schedule share the optimizer's state if nothing else fits",
          "[scheduler][planners][strategies]") {
  PlanRequest request = chain_request({1, 2, 1, 3, 1, 1, 2, 1});
  for (ParameterCost& parameter : request.costs.parameters) {
    parameter.held = 10 + 10 + 980;  // each device holds all stages: 8000 in all
  }
  request.may_share = true;
  request.memory = 6000 * (1 + kMemoryMargin);
  SECTION("of a builder") {
    request.builder = GENERATE("chimera", "dualpipe");
  }
  SECTION("as given") {
    request.schedule = chimera(2, 4);
  }
  const PlanProposal best = propose(request, "auto").front();
  CHECK(best.fits);
  CHECK(Layout::of(best.candidate.schedule).replicas() == 2);
  CHECK(best.candidate.sharing == Sharing::States);
  CHECK(best.candidate.schedule_name.ends_with(" zero=1"));
  Candidate whole = best.candidate;
  whole.sharing = Sharing::Nothing;
  CHECK(judge(request, whole).bytes[0] - best.bytes[0] == 8 * 980 / 2);
  request.memory = 4000 * (1 + kMemoryMargin);
  CHECK_THAT(refusal([&] { (void)propose(request, "auto"); }, Errc::PlanInfeasible),
             ContainsSubstring("copies that share what they hold (--zero) do not fit either"));
}

TEST_CASE("copies in a schedule share as much as fitting needs",
          "[scheduler][planners][strategies]") {
  PlanRequest request = chain_request({1, 2, 1, 3, 1, 1, 2, 1});
  for (ParameterCost& parameter : request.costs.parameters) {
    parameter = {parameter.name, 5 * kSharedBucket, 20 * kSharedBucket};
  }
  request.may_share = true;
  // Each device has 40 buckets of weights, 40 of gradients and 80 of states. A sum of two copies
  // holds 1.5 times its bytes.
  const auto [buckets, level] = GENERATE(table<double, Sharing>(
      {{200, Sharing::States}, {120, Sharing::Gradients}, {95, Sharing::Weights}}));
  request.memory = buckets * kSharedBucket * (1 + kMemoryMargin);
  SECTION("of a builder") {
    request.builder = GENERATE("chimera", "dualpipe");
  }
  SECTION("as given") {
    request.schedule = chimera(2, 4);
  }
  const PlanProposal best = propose(request, "auto").front();
  CHECK(best.fits);
  CHECK(Layout::of(best.candidate.schedule).replicas() == 2);
  CHECK(best.candidate.sharing == level);
}

TEST_CASE("which of two plans leads is said as of all (PO-1)", "[scheduler][planners]") {
  const PlanRequest request = chain_request({1, 1, 1, 1});
  const PlanProposal even = judge(request, two_stages(2, 4));
  const PlanProposal uneven = judge(request, two_stages(3, 4));
  CHECK(leads(even, uneven));
  CHECK_FALSE(leads(uneven, even));
  CHECK(leads(even, even));
  PlanProposal alike = even;
  alike.step *= 1 + kAlike / 2;
  CHECK(leads(even, alike));
  CHECK_FALSE(leads(alike, even));
  alike.bytes.front() -= 1;  // it holds less
  CHECK(leads(alike, even));
  alike.fits = false;
  CHECK(leads(even, alike));
}

TEST_CASE("a schedule that its stages cannot run is a planner's fault", "[scheduler][planners]") {
  Candidate wrong = two_stages(2, 4);
  wrong.schedule = gpipe(3, 4);
  CHECK_THAT(refusal(
                 [&] {
                   (void)judge(chain_request({1, 1, 1, 1}), wrong);
                 },
                 Errc::ScheduleInvalid),
             ContainsSubstring("planner test proposes"));
}

TEST_CASE("no plan is shorter than its bound", "[scheduler][planners]") {
  const PlanRequest request = chain_request({1, 5, 1, 1});
  for (int first = 1; first < 4; ++first) {
    const PlanProposal made = judge(request, two_stages(first, 4));
    CHECK(made.bound > 0);
    CHECK(made.step >= made.bound);
  }
}

TEST_CASE("the simplest of the fastest leads, what does not fit comes last (PO-1)",
          "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 2, 1, 3, 1, 1, 2, 1});
  const std::vector<PlanProposal> all = propose(request, "auto");
  REQUIRE(all.size() > 3);
  const auto fastest = std::ranges::min_element(all, {}, &PlanProposal::step);
  CHECK(all.front().step <= fastest->step * (1 + kAlike));
  for (const PlanProposal& one : all) {
    CHECK((one.step > fastest->step * (1 + kAlike) ||
           one.candidate.stages.size() >= all.front().candidate.stages.size()));
  }
  request.memory = std::ranges::min_element(all, {}, &PlanProposal::needs)->needs() + 1;
  const std::vector<PlanProposal> tight = propose(request, "auto");
  CHECK(tight.front().fits);
  CHECK(std::ranges::is_partitioned(tight, [](const PlanProposal& p) { return p.fits; }));
  const auto refused = [&] {
    return refusal([&] { (void)propose(request, "auto"); }, Errc::PlanInfeasible);
  };
  request.memory *= 0.9;  // enough for the weights
  CHECK_THAT(refused(),
             ContainsSubstring("no plan fits the devices") &&
                 ContainsSubstring("or --precision bf16 (of train and profile) if the costs are "
                                   "of float32") &&
                 !ContainsSubstring("leaner schedule"));
  request.costs.device.precision = "fp32";
  CHECK_THAT(refused(),
             ContainsSubstring("or --precision bf16 (of train and profile)") &&
                 !ContainsSubstring("if the costs"));
  request.costs.device.precision = "bf16";
  CHECK_THAT(refused(),
             ContainsSubstring(" or smaller microbatches") && !ContainsSubstring("--precision"));
  request.memory /= 4;
  CHECK_THAT(refused(), ContainsSubstring("or smaller microbatches") && !ContainsSubstring("bf16"));
}

TEST_CASE("auto is at most two percent behind any schedule that is named",
          "[scheduler][planners]") {
  PlanRequest request =
      chain_request(GENERATE(std::vector<double>{1, 2, 1, 3, 1, 1, 2, 1, 4, 1, 1, 2},
                             std::vector<double>{9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7}));
  request.devices = GENERATE(2, 3);
  request.batch = 12;
  request.costs.device.task = 0.1;
  request.costs.device.split = 1.2;
  const double best = propose(request, "auto").front().step;
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name, request.devices);
    PlanRequest named = request;
    named.builder = builder.name;
    try {
      const double step = propose(named, "auto").front().step;
      CHECK(best <= step * 1.02);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::ScheduleParameter);  // it needs other numbers
    }
  }
}

TEST_CASE("what a named schedule fits, auto finds", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 2, 1, 3, 1, 1, 2, 1, 4, 1, 1, 2});
  const std::string name = GENERATE("hanayo", "zb-v", "interleaved", "1f1b");
  PlanRequest named = request;
  named.builder = name;
  named.memory = 1e9;
  double least = named.memory;
  for (bool fits = true; fits;) {  // less and less memory until it no longer fits
    try {
      const std::vector<PlanProposal> found = propose(named, "auto");
      least = found.front().needs();
      named.memory = least * 0.97;
    } catch (const Error& error) {
      CHECK(error.code() == Errc::PlanInfeasible);
      fits = false;
    }
  }
  CAPTURE(name, least);
  request.memory = least;
  CHECK(propose(request, "auto").front().fits);
}

/// Returns a request for a chain of uneven operators, too many to try all cuts.
PlanRequest large_request(int operators, int devices) {
  std::vector<double> times;
  for (int op = 0; op < operators; ++op) {
    times.push_back(1 + op * 7919 % 13);
  }
  PlanRequest request = chain_request(times);
  request.devices = devices;
  request.batch = 2 * devices;
  return request;
}

/// Counts by part how often a search asks whether to continue.
std::map<std::string, int> questions_of(PlanRequest request) {
  std::map<std::string, int> asked;
  request.goes_on = [&](std::string_view what) {
    ++asked[std::string(what)];
    return true;
  };
  (void)propose(request, "auto");
  return asked;
}

TEST_CASE("long parts of a search look at the time while they run", "[scheduler][planners]") {
  PlanRequest request = large_request(/*operators=*/100, /*devices=*/3);
  std::map<std::string, int> asked = questions_of(request);
  std::map<std::string, int> most;  // by the first word of a part
  for (const auto& [part, times] : asked) {
    int& here = most[part.substr(0, part.find_first_of(": "))];
    here = std::max(here, times);
  }
  CHECK(most.at("pfeife") > 20);  // beams, and moves
  CHECK(most.at("moves") > 20);   // of cuts for builders
  CHECK(most.at("the") > 0);      // best cuts for builders
  CHECK(most.at("cuts") > 20);
  CHECK(most.at("graphpipe") > 2);
  request.memory = 1;
  asked.clear();
  request.goes_on = [&](std::string_view what) {
    ++asked[std::string(what)];
    return true;
  };
  CHECK_THROWS_AS(propose(request, "auto"), Error);
  CHECK(asked.at("the least memory") > 20);
}

TEST_CASE("a search whose time is over ends soon, at any moment, with a plan",
          "[scheduler][planners]") {
  PlanRequest request = large_request(/*operators=*/2000, /*devices=*/8);
  const int answers = GENERATE(0, 1, 30, 60, 100, 400);
  int asked = 0;
  request.goes_on = [&](std::string_view) { return ++asked <= answers; };
  CHECK(propose(request, "auto").front().fits);
  CHECK(asked > answers);
  CHECK(asked <= answers + 100);  // it asks each part that is left
}

TEST_CASE("who asks one planner alone is told that others may find more", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 2, 1, 3});
  request.memory = 1;
  CHECK_THAT(refusal([&] { (void)propose(request, "capslog"); }, Errc::PlanInfeasible),
             ContainsSubstring("no plan of capslog fits") && ContainsSubstring("ask planner auto"));
}

TEST_CASE("what fits leaves a margin beyond what is predicted", "[scheduler][planners]") {
  PlanRequest request = chain_request({1, 2, 1, 3});
  const PlanProposal free = propose(request, "balance").front();
  const double predicted = free.bytes[static_cast<std::size_t>(free.fullest())];
  CHECK(free.needs() == predicted * (1 + kMemoryMargin));
  request.memory = free.needs();
  CHECK(judge(request, free.candidate).fits);
  request.memory = predicted;
  CHECK_FALSE(judge(request, free.candidate).fits);
  CHECK_THAT(usable(free.needs()), Catch::Matchers::WithinRel(predicted, 1e-12));
  // Planners search for plans that fit with it.
  request.memory = free.needs() * 0.999;
  for (const PlanProposal& one : propose(request, "capslog")) {
    CHECK(one.fits == (one.needs() <= request.memory));
  }
  CHECK(propose(request, "capslog").front().fits);
}

TEST_CASE("what a request lacks is said", "[scheduler][planners]") {
  const auto failure_of = [](const PlanRequest& request) {
    return refusal([&] { (void)request.sizes(); }, Errc::UsageArgument);
  };
  PlanRequest request = chain_request({1, 1});
  request.devices = 0;
  CHECK_THAT(failure_of(request), ContainsSubstring("at least one device"));
  request = chain_request({1, 1});
  request.batch = 0;
  CHECK_THAT(failure_of(request), ContainsSubstring("at least one sample"));
  request = chain_request({1, 1});
  request.batch = 5;
  request.microbatch_sizes = {2};
  CHECK_THAT(failure_of(request), ContainsSubstring("do not divide a batch of 5"));
  request.microbatch_sizes.clear();
  request.costs.samples = 2;
  CHECK_THAT(failure_of(request),
             ContainsSubstring("none of the measured microbatch sizes divides"));
  CHECK_THAT(refusal([&] { (void)find_planner("pfiefe"); }, Errc::UsageArgument),
             ContainsSubstring("there is no planner 'pfiefe'"));
}

}  // namespace
}  // namespace stagecraft
