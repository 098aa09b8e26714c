#include "stagecraft/scheduler/planners/pfeife/step_graph.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/planners/pfeife/phase_barriers.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Two stages with forwards of 15 and 10, backwards of 30 and 20, and a link of 1.
StepGraph two_stages(const Schedule& schedule, std::span<const EventOrder> orders = {}) {
  StepGraph graph(schedule, schedule.stage_graph(), orders);
  graph.set_duration(StageId(0), CellKind::Forward, 15);
  graph.set_duration(StageId(0), CellKind::Backward, 30);
  graph.set_duration(StageId(1), CellKind::Forward, 10);
  graph.set_duration(StageId(1), CellKind::Backward, 20);
  graph.set_transfer(0, 1, 1);
  return graph;
}

double start_of(const StepGraph& graph, CellKind kind, int stage, int microbatch) {
  return graph.start(graph.find({Task{kind, StageId(stage), Microbatch(microbatch)}}));
}

std::string text_of(const std::vector<StepEvent>& path) {
  std::string text;
  for (const StepEvent& event : path) {
    text += (text.empty() ? "" : " ") +
            (event.task.stage == kNoStage ? "update" : to_string(event.task));
  }
  return text;
}

TEST_CASE("tasks start when their row and their data are ready", "[scheduler][planners]") {
  StepGraph all_first = two_stages(gpipe(2, 2));
  CHECK(all_first.run() == 122);
  CHECK(start_of(all_first, CellKind::Forward, 1, 1) == 31);
  CHECK(start_of(all_first, CellKind::Backward, 0, 0) == 62);
  CHECK(start_of(all_first, CellKind::Backward, 0, 1) == 92);
  CHECK(two_stages(one_f_one_b(2, 2)).run() == 107);
}

TEST_CASE("the critical path is the chain of tasks that makes the step so long",
          "[scheduler][planners]") {
  StepGraph graph = two_stages(gpipe(2, 2));
  graph.run();
  CHECK(text_of(graph.critical_path()) == "0F0 0F1 1F1 1B0 0B0 0B1");
  graph.add_update(1, 100);
  graph.run();
  CHECK(text_of(graph.critical_path()) == "0F0 0F1 1F1 1B0 1B1 update");
}

TEST_CASE("a row's update runs behind its last task", "[scheduler][planners]") {
  StepGraph graph = two_stages(gpipe(2, 2));
  graph.add_update(0, 3);
  CHECK(graph.run() == 125);
  graph.add_update(1, 100);  // its row ends at 81
  CHECK(graph.run() == 181);
  graph.clear_updates();
  CHECK(graph.run() == 122);
}

TEST_CASE("nothing waits for a transfer that there is not", "[scheduler][planners]") {
  StepGraph graph = two_stages(gpipe(2, 2));
  graph.set_transfer(0, StepGraph::kNoTransfer, StepGraph::kNoTransfer);
  CHECK(graph.run() == 90);
  CHECK(start_of(graph, CellKind::Forward, 1, 0) == 0);
}

TEST_CASE("every builder's schedule takes as long as simulated", "[scheduler][planners]") {
  for (const BuilderInfo& builder : builders()) {
    if (builder.takes_graph) {
      continue;
    }
    CAPTURE(builder.name);
    const Schedule schedule =
        build_schedule(builder.name, {.devices = 4, .microbatches = 8, .chunks = {}});
    const StageGraph stages = schedule.stage_graph();
    Costs costs;
    StepGraph graph(schedule, stages);
    for (int s = 0; s < stages.size(); ++s) {
      const Durations times{.forward = 3.0 + s % 3,
                            .backward = 7.0 + s,
                            .backward_input = 4.0 + s,
                            .backward_weight = 3};
      costs.stages.each.push_back(times);
      for (const CellKind kind : {CellKind::Forward,
                                  CellKind::Backward,
                                  CellKind::BackwardInput,
                                  CellKind::BackwardWeight}) {
        graph.set_duration(StageId(s), kind, times.of(kind));
      }
    }
    costs.links.usual.latency = 2;
    for (std::size_t e = 0; e < graph.edges().size(); ++e) {
      graph.set_transfer(e, 2, 2);
    }
    CHECK(graph.run() == simulate(schedule, stages, costs).makespan);
  }
}

TEST_CASE("barriers make rows compute and communicate by turns", "[scheduler][planners]") {
  const Schedule schedule = gpipe(2, 2);
  const auto barriers = phase_barriers(schedule, schedule.stage_graph());
  REQUIRE(barriers.size() == 2);
  StepGraph graph = two_stages(schedule, barriers);
  graph.set_transfer(0, 20, 1);
  graph.run();
  CHECK(start_of(graph, CellKind::Forward, 0, 1) == 35);       // 0F0 and its transfer
  CHECK(start_of(graph, CellKind::Forward, 1, 1) == 50 + 20);  // stage 1 computes until 45
  StepGraph free = two_stages(schedule);
  free.set_transfer(0, 20, 1);
  free.run();
  CHECK(start_of(free, CellKind::Forward, 1, 1) == 50);
}

TEST_CASE("orders that cannot be kept are refused with what is wrong", "[scheduler][planners]") {
  const Schedule schedule = one_f_one_b(2, 2);
  const Task first{CellKind::Forward, StageId(0), Microbatch(0)};
  const Task last{CellKind::Backward, StageId(0), Microbatch(1)};
  const auto text_for = [&](const EventOrder& order) {
    return refusal([&] { two_stages(schedule, std::span(&order, 1)); }, Errc::ScheduleInvalid);
  };
  CHECK_THAT(text_for({{last}, {first}}),
             ContainsSubstring("the order 0B1 < 0F0 cannot be kept: 0B1 waits for 0F0"));
  CHECK_THAT(text_for({{first, StageId(5)}, {last}}), ContainsSubstring("names 0F0>5"));
  const std::vector<EventOrder> some{{{first}, {last}}, {{last}, {first}}, {{first}, {last}}};
  CHECK_THAT(refusal([&] { two_stages(schedule, some); }, Errc::ScheduleInvalid),
             ContainsSubstring("the order 0B1 < 0F0 cannot be kept"));
  StepGraph graph = two_stages(schedule);
  CHECK_THAT(refusal([&] { graph.add_order(graph.find({last}), graph.find({first})); },
                     Errc::ScheduleInvalid),
             ContainsSubstring("0B1 cannot come before 0F0"));
  CHECK(graph.run() == 107);  // unchanged
  const std::pair<int, int> turns[] = {{graph.find({first}), graph.find({last})},
                                       {graph.find({last}), graph.find({first})}};
  CHECK_THAT(refusal([&] { graph.add_orders(turns); }, Errc::ScheduleInvalid),
             ContainsSubstring("wait for each other"));
  CHECK(graph.run() == 107);
  graph.add_orders(std::span(turns, 1));
  CHECK(graph.run() == 107);
}

TEST_CASE("a schedule that lacks a task is refused", "[scheduler][planners]") {
  const Schedule schedule = Schedule::parse("@form list\n0F0 0B0\n1F0");
  CHECK_THAT(refusal([&] { StepGraph(schedule, schedule.stage_graph()); }, Errc::ScheduleInvalid),
             ContainsSubstring("0B0 waits for 1B0"));
}

}  // namespace
}  // namespace stagecraft
