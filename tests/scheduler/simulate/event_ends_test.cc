/// Tests how simulate() runs steps that keep further orders.
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/formats/event_orders.h"
#include "stagecraft/scheduler/planners/pfeife/phase_barriers.h"
#include "stagecraft/scheduler/planners/pfeife/step_graph.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns costs of forwards of 15 and 10, and backwards of 30 and 20.
Costs two_stages(double link) {
  Costs costs;
  costs.stages.each = {{.forward = 15, .backward = 30}, {.forward = 10, .backward = 20}};
  costs.links.usual.latency = link;
  return costs;
}

Timeline run(const Schedule& schedule, const Costs& costs, const std::string& orders) {
  return simulate(schedule, schedule.stage_graph(), costs, parse_event_orders(orders));
}

std::string ordered_path_text(const Timeline& timeline) {
  std::string text;
  for (const Task& task : timeline.critical_path) {
    text += (text.empty() ? "" : " ") + to_string(task);
  }
  return text;
}

TEST_CASE("a task waits for a transfer of its own row's, and a transfer for a task",
          "[scheduler][simulate]") {
  const Schedule schedule = gpipe(2, 2);
  const Timeline sender = run(schedule, two_stages(20), "0F0>1 < 0F1");
  CHECK(sender.rows[0].entries[1].start == 35);
  CHECK(sender.rows[0].entries[1].waited_for == Task{CellKind::Forward, StageId(0), Microbatch(0)});
  CHECK(sender.rows[0].entries[1].in_transfer == 20);
  CHECK(sender.rows[1].entries[1].start == 35 + 15 + 20);
  CHECK(ordered_path_text(sender) == "0F0 0F1 1F1 1B0 0B0 0B1");
  const Timeline both = run(schedule, two_stages(20), "0F0>1 < 0F1\n1F0 < 0F1>1");
  CHECK(both.rows[1].entries[0].end == 45);
  CHECK(both.rows[1].entries[1].start == 70);  // 0F1 ends at 50
  const Timeline receiver = run(schedule, two_stages(20), "1F0 < 0F1>1");
  CHECK(receiver.rows[1].entries[1].start == 45 + 20);  // not 30 + 20
  CHECK(ordered_path_text(receiver) == "0F0 1F0 1F1 1B0 0B0 0B1");
}

TEST_CASE("transfers wait for transfers, and the last task before them is on the path",
          "[scheduler][simulate]") {
  const Timeline timeline = run(gpipe(2, 3), two_stages(20), "0F0>1 < 0F1>1\n0F1>1 < 0F2>1");
  const auto& row = timeline.rows[1].entries;
  CHECK(row[0].start == 35);
  CHECK(row[1].start == 55);
  CHECK(row[2].start == 75);
  CHECK(row[2].waited_for == Task{CellKind::Forward, StageId(0), Microbatch(2)});
  CHECK(row[2].in_transfer == 10);  // row 1 is free at 65
  CHECK(ordered_path_text(timeline) == "0F0 1F2 1B0 0B0 0B1 0B2");
}

TEST_CASE("orders are kept on shared processors too", "[scheduler][simulate]") {
  Costs costs = two_stages(20);
  costs.device.processors = 1;
  const Timeline timeline = run(gpipe(2, 2), costs, "0F0>1 < 0F1\n1F0 < 0F1>1");
  // 0F1 and 1F0 begin at 35 and share the processor: 10 of both take 20, and 5 are left.
  CHECK(timeline.rows[1].entries[0].end == 55);
  CHECK(timeline.rows[0].entries[1].end == 60);
  CHECK(timeline.rows[1].entries[1].start == 80);
}

TEST_CASE("with phases every builder's step takes what its graph of waits says",
          "[scheduler][simulate]") {
  for (const BuilderInfo& builder : builders()) {
    if (builder.takes_graph) {
      continue;
    }
    CAPTURE(builder.name);
    const Schedule schedule =
        build_schedule(builder.name, {.devices = 4, .microbatches = 8, .chunks = {}});
    const StageGraph stages = schedule.stage_graph();
    const std::vector<EventOrder> phases = phase_barriers(schedule, stages);
    Costs costs;
    costs.links.usual.latency = 2;
    StepGraph graph(schedule, stages, phases);
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
    for (std::size_t e = 0; e < graph.edges().size(); ++e) {
      graph.set_transfer(e, 2, 2);
    }
    const double time = simulate(schedule, stages, costs, phases).makespan;
    CHECK(graph.run() == time);
    CHECK(time >= simulate(schedule, stages, costs).makespan);
  }
}

TEST_CASE("stages of different sizes take turns by their own microbatches",
          "[scheduler][simulate]") {
  StageGraph stages = StageGraph::chain(2);
  stages.set_microbatch_sizes({1, 2});
  const Schedule schedule = kfkb(stages, 4, {1});
  std::string text;
  for (const EventOrder& order : phase_barriers(schedule, stages)) {
    text += to_string(order) + "; ";
  }
  CHECK(text == "0F0>1 < 0F1; 0F1>1 < 0F2; 1F0 < 0F2>1; 0F2>1 < 0F3; ");
  CHECK(simulate(schedule, stages, two_stages(1), phase_barriers(schedule, stages)).makespan > 0);
}

TEST_CASE("orders of what there is not, and in a circle, are refused",
          "[scheduler][simulate][bad-input]") {
  const auto failure_of = [](const std::string& orders) {
    return refusal([&] { (void)run(one_f_one_b(2, 2), two_stages(1), orders); },
                   Errc::ScheduleInvalid);
  };
  CHECK_THAT(failure_of("0F0 < 5F0"), ContainsSubstring("the order 0F0 < 5F0 names 5F0"));
  CHECK_THAT(failure_of("0F7 < 0F0"), ContainsSubstring("names 0F7"));
  CHECK_THAT(failure_of("0I0 < 0F1"), ContainsSubstring("names 0I0"));
  CHECK_THAT(failure_of("0F0>0 < 0F1"), ContainsSubstring("names 0F0>0"));
  CHECK_THAT(failure_of("0B0>1 < 0F1"), ContainsSubstring("names 0B0>1"));
  CHECK_THAT(failure_of("0B1 < 0F0"), ContainsSubstring("leave out an order"));
  CHECK_THAT(failure_of("0F0 < 0F0"), ContainsSubstring("leave out an order"));
  CHECK_THAT(failure_of("0F0>1 < 0F1>1\n0F1>1 < 0F0>1"), ContainsSubstring("wait for each other"));
}

}  // namespace
}  // namespace stagecraft
