#include "stagecraft/scheduler/simulate/simulate.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

std::string path_text(const Timeline& timeline) {
  std::string text;
  for (const Task& task : timeline.critical_path) {
    text += text.empty() ? "" : " ";
    text += to_string(task);
  }
  return text;
}

TEST_CASE("tasks start when their row is free and their data is there", "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(2, 2);
  const Timeline timeline = simulate(schedule, schedule.stage_graph());
  // Row 0 runs F0 0-1, F1 1-2, then B0 waits for stage 1, which runs F0 1-2, B0 2-4, F1 4-5, B1
  // 5-7.
  CHECK(timeline.rows[0].entries[2].start == 4);
  CHECK(timeline.rows[1].entries[3].end == 7);
  CHECK(timeline.makespan == 9);
  CHECK(timeline.rows[0].busy == 6);
  CHECK(timeline.rows[0].idle == 3);
  CHECK(timeline.rows[1].span_idle == 0);
  CHECK(timeline.bubble_fraction(0) == Catch::Approx(1.0 / 3));
}

TEST_CASE("a transfer delays the other row, not its own", "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(2, 1);
  Costs costs;
  costs.links.usual.latency = 0.5;
  CHECK(simulate(schedule, schedule.stage_graph(), costs).makespan == 7);
  costs.links.each[{0, 1}] = {.latency = 2};  // the other direction is unchanged
  CHECK(simulate(schedule, schedule.stage_graph(), costs).makespan == 8.5);
  const Schedule one_row = Schedule::parse("0F0 1F0 1B0 0B0");
  CHECK(simulate(one_row, one_row.stage_graph(), costs).makespan == 6);
}

TEST_CASE("a transfer takes its link's latency and its bytes over the link's bandwidth",
          "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(3, 1);
  Costs costs;
  costs.links.usual = {.latency = 0.5, .bandwidth = 10};
  costs.links.bytes = 20;  // 2.5 each, four transfers
  CHECK(simulate(schedule, schedule.stage_graph(), costs).makespan == 9 + 4 * 2.5);
  costs.links.edge_bytes[{1, 2}] = 5;  // 1 each, there and back
  CHECK(simulate(schedule, schedule.stage_graph(), costs).makespan == 9 + 2 * 2.5 + 2 * 1);
  costs.links.each[{2, 1}] = {.bandwidth = 5};  // back: 1, without latency
  CHECK(simulate(schedule, schedule.stage_graph(), costs).makespan == 9 + 2 * 2.5 + 1 + 1);
}

TEST_CASE("stages of unequal cost are simulated with their own durations",
          "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(2, 2);
  Costs costs;
  costs.stages.each = {{.forward = 15, .backward = 30}, {.forward = 10, .backward = 20}};
  costs.links.usual.latency = 1;
  CHECK(simulate(schedule, schedule.stage_graph(), costs).makespan == 107);
  const Timeline all_first = simulate(gpipe(2, 2), StageGraph::chain(2), costs);
  CHECK(all_first.makespan == 122);
  CHECK(all_first.rows[1].entries[1].start == 31);
  CHECK(all_first.rows[0].entries[2].start == 62);
  CHECK(all_first.rows[0].entries[3].start == 92);
}

TEST_CASE("a row is as fast as the slowest of its devices", "[scheduler][simulate]") {
  Costs costs;
  costs.devices = {{1, {.speed = 0.5}}, {2, {.speed = 4}}};
  const Schedule schedule = one_f_one_b(2, 1);
  const auto ends = [&](const Schedule& of) {
    const Timeline timeline = simulate(of, StageGraph::chain(2), costs);
    return std::pair(timeline.rows[0].entries[0].end, timeline.rows[1].busy);
  };
  CHECK(ends(schedule) == std::pair(1.0, 6.0));
  // Row 0 is on devices 0 and 2, row 1 on 1 and 3.
  CHECK(ends(in_copies(schedule, 2)) == std::pair(1.0, 6.0));
  Schedule::Headers headers = schedule.headers();
  headers.places = {{Rank(2)}, {Rank(0), Rank(1)}};
  // Each of two devices of row 1 runs one of two units, the device of row 0 both.
  CHECK(ends(Schedule(schedule.form(), schedule.rows(), headers)) == std::pair(0.5, 6.0));
}

TEST_CASE("a group lasts as long as its members, or as stated", "[scheduler][simulate]") {
  const Schedule schedule = Schedule::parse("@form list\n0F0 0F1|0B0 0B1");
  CHECK(simulate(schedule, schedule.stage_graph()).makespan == 6);
  CHECK(simulate(schedule, schedule.stage_graph(), {.stages = {.group = 2.5}}).makespan == 5.5);
  CHECK(simulate(
            schedule, schedule.stage_graph(), {.stages = {.group = 2.5, .groups = {{{0, 0}, 2}}}})
            .makespan == 5);
  CHECK(peak_in_flight(schedule.rows()[0], schedule.stage_graph()) == 2);
}

TEST_CASE("W releases the activation, I does not", "[scheduler][simulate]") {
  const Schedule schedule = Schedule::parse("0F0 0I0 0F1 0I1 0W0 0W1");
  CHECK(simulate(schedule, schedule.stage_graph()).rows[0].peak_in_flight == 2);
}

TEST_CASE("a frozen stage keeps no activation", "[scheduler][simulate]") {
  StageGraph graph = StageGraph::chain(2);
  graph.set_needs_weight_grad(StageId(0), false);
  const Schedule schedule = gpipe(graph, 4);
  const Timeline timeline = simulate(schedule, graph);
  CHECK(timeline.rows[0].peak_in_flight == 0);
  CHECK(timeline.rows[0].entries.size() == 4);
  CHECK(timeline.rows[1].peak_in_flight == 4);
}

TEST_CASE("what does nothing takes no time, waits for no other row and keeps nothing",
          "[scheduler][simulate][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0});
  const Schedule schedule = one_f_one_b(2, 2);
  const Timeline timeline = simulate(schedule, graph);
  // Row 0 has finished at 2; row 1 runs F0 1-2, B0 2-4, F1 4-5, B1 5-7.
  CHECK(timeline.rows[0].entries[2].end == 2);
  CHECK(timeline.rows[0].entries[3].end == 2);
  CHECK(timeline.rows[0].busy == 2);
  CHECK(timeline.rows[0].peak_in_flight == 0);
  CHECK(timeline.rows[1].peak_in_flight == 1);
  CHECK(timeline.makespan == 7);
  CHECK(path_text(timeline) == "0F0 1F0 1B0 1F1 1B1");
}

TEST_CASE("where I does nothing W takes the time of both and waits for the gradient",
          "[scheduler][simulate][surplus]") {
  const Schedule schedule = Schedule::parse("0F0 0I0 . . 0W0\n. 1F0 1I0 1W0 .");
  StageGraph graph = StageGraph::chain(2);
  graph.set_needs_input_grad(StageId(0), false);
  const Timeline timeline = simulate(schedule, graph);
  const auto& row = timeline.rows[0].entries;
  CHECK(row[1].end == 1);  // 0I0
  CHECK(row[2].start == 3);
  CHECK(row[2].end == 5);
  CHECK(row[2].waited_for == Task{CellKind::BackwardInput, StageId(1), Microbatch(0)});
  CHECK(timeline.rows[0].peak_in_flight == 1);
}

TEST_CASE("where W does nothing I frees what is kept", "[scheduler][simulate][surplus]") {
  const Schedule schedule = Schedule::parse(
      "0F0 0F1 .   .   0B0 .   0B1 .\n"
      ".   1F0 1I0 1F1 1W0 1I1 .   1W1\n");
  StageGraph graph = StageGraph::chain(2);
  const MemoryModel memory{.activations = {10, 10}, .transient = {0, 1}, .input_release = 0.5};
  CHECK(simulate(schedule, graph, {.stages = {.memory = memory}}).rows[1].peak_bytes == 15 + 1);
  graph.freeze({1});
  const Timeline timeline = simulate(schedule, graph, {.stages = {.memory = memory}});
  CHECK(timeline.rows[1].peak_in_flight == 1);
  CHECK(timeline.rows[1].peak_bytes == 10 + 1);
  CHECK(timeline.rows[1].entries.back().bytes == 0);
  CHECK(timeline.rows[1].entries.back().bytes_after == 0);
  CHECK(timeline.rows[1].busy == 4);
}

TEST_CASE("what waits between I and W is that of the stage, and each half has its own peak",
          "[scheduler][simulate][memory]") {
  const Schedule schedule = Schedule::parse(
      "0F0 0F1 .   .   0B0 .   0B1 .\n"
      ".   1F0 1I0 1F1 1W0 1I1 .   1W1\n");
  const MemoryModel memory{.activations = {0, 10},
                           .transient = {0, 1},
                           .waiting = {0, 4},
                           .input_transient = {0, 6},
                           .weight_transient = {0, 2},
                           .input_release = 0.5};
  const Timeline timeline =
      simulate(schedule, StageGraph::chain(2), {.stages = {.memory = memory}});
  std::vector<double> during, after;
  for (const EntryTime& entry : timeline.rows[1].entries) {
    during.push_back(entry.bytes);
    after.push_back(entry.bytes_after);
  }
  CHECK(during == std::vector<double>{10 + 1, 10 + 6, 14 + 1, 14 + 2, 10 + 6, 4 + 2});
  CHECK(after == std::vector<double>{10, 4, 14, 10, 4, 0});
}

TEST_CASE("who recomputes does so before B or I, and before a W that does all",
          "[scheduler][simulate]") {
  const auto makespan = [](const char* list, bool owes = true) {
    StageGraph graph = StageGraph::chain(1);
    graph.set_needs_input_grad(StageId(0), owes);
    return simulate(Schedule::parse(list), graph, {.stages = {.usual = {.recompute = 0.5}}})
        .makespan;
  };
  CHECK(makespan("0F0 0B0") == 1 + 2.5);
  CHECK(makespan("0F0 0I0 0W0") == 1 + 1.5 + 1);
  CHECK(makespan("0F0 0I0 0W0", false) == 1 + 2.5);
}

TEST_CASE("a group takes the time of the members that do something",
          "[scheduler][simulate][surplus]") {
  const Schedule schedule = Schedule::parse(
      "@form list\n"
      "0F0 0F1|0B0 0B1\n"
      "1F0 1F1|1B0 1B1\n");
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0});
  const Timeline timeline = simulate(schedule, graph, {.stages = {.group = 2.5}});
  CHECK(timeline.rows[0].entries[1].end - timeline.rows[0].entries[1].start == 1);
  CHECK(timeline.rows[1].entries[1].end - timeline.rows[1].entries[1].start == 2.5);
}

TEST_CASE("in columns every task has its own, also one that does nothing",
          "[scheduler][simulate][surplus]") {
  for (const BuilderInfo& builder : builders()) {
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    CAPTURE(builder.name);
    const Schedule schedule = build_schedule(builder.name, request);
    StageGraph graph = schedule.stage_graph();
    graph.freeze({0, 1});
    CHECK(validate(schedule, graph).empty());
    const Schedule array = to_array(schedule.to_list(), graph);
    CHECK(array.to_list() == schedule.to_list());
    CHECK(validate(array, graph).empty());
    const Timeline all = simulate(schedule, schedule.stage_graph());
    const Timeline frozen = simulate(schedule, graph);
    for (std::size_t r = 0; r < all.rows.size(); ++r) {
      CHECK(frozen.rows[r].busy <= all.rows[r].busy);
      CHECK(frozen.rows[r].peak_in_flight <= all.rows[r].peak_in_flight);
    }
  }
}

TEST_CASE("the critical path leads without a gap to the last task", "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(2, 2);
  const Timeline timeline = simulate(schedule, schedule.stage_graph());
  CHECK(path_text(timeline) == "0F0 1F0 1B0 1F1 1B1 0B1");
}

TEST_CASE("every idle moment has a cause", "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(2, 2);
  Costs costs;
  costs.links.usual.latency = 0.5;
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), costs);
  // Row 1 gets its input at 1.5 and runs F0 B0 F1 B1 until 7.5; row 0 waits for both gradients.
  const Bubbles& first = timeline.rows[0].bubbles;
  CHECK(first.warm_up == 0);
  CHECK(first.dependency == 2.5 + 0.5);
  CHECK(first.transfer == 0.5 + 0.5);
  CHECK(first.drain == 0);
  CHECK(timeline.rows[0].entries[2].waited_for ==
        Task{CellKind::Backward, StageId(1), Microbatch(0)});
  CHECK(timeline.rows[1].bubbles.warm_up == 1.5);
  CHECK(timeline.rows[1].bubbles.drain == 2.5);
  for (const RowTimeline& row : timeline.rows) {
    const Bubbles& b = row.bubbles;
    CHECK(b.warm_up + b.dependency + b.transfer + b.drain == Catch::Approx(row.idle));
  }
}

TEST_CASE("an update waits forevery weight gradient of its stage", "[scheduler][simulate]") {
  const Schedule schedule = Schedule::parse("@form list\n0F0 0I0 0F1 0I1 0W1 0W0 0U");
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), Costs::unit());
  CHECK(timeline.rows[0].entries.back().start == 6);
}

TEST_CASE("what cannot run is refused", "[scheduler][simulate]") {
  const Schedule missing = Schedule::parse("0F0\n1F0 1B0");
  CHECK_NOTHROW(simulate(missing, missing.stage_graph()));
  const Schedule headless = Schedule::parse("@stages 2\n.\n1F0 1B0");
  CHECK_THROWS_AS(simulate(headless, headless.stage_graph()), Error);
  const Schedule stuck = Schedule::parse("@form list\n0B0 0F0");
  CHECK_THROWS_AS(simulate(stuck, stuck.stage_graph()), Error);
}

TEST_CASE("every bubble is listed with its cause and what it waited for", "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(2, 2);
  Costs costs;
  costs.links.usual.latency = 0.5;
  const Timeline timeline = simulate(schedule, schedule.stage_graph(), costs);
  std::vector<std::string> found;
  for (const Bubble& bubble : list_bubbles(timeline)) {
    const bool waited = bubble.next != nullptr && bubble.next->waited_for.has_value();
    found.push_back(fmt::format("d{} {}-{} {} {}",
                                bubble.row,
                                bubble.start,
                                bubble.end,
                                name(bubble.cause),
                                waited ? to_string(*bubble.next->waited_for) : "-"));
  }
  CHECK(found == std::vector<std::string>{"d0 2-4.5 dependency 1B0",
                                          "d0 4.5-5 transfer 1B0",
                                          "d0 7-7.5 dependency 1B1",
                                          "d0 7.5-8 transfer 1B1",
                                          "d1 0-1.5 warm-up 0F0",
                                          "d1 7.5-10 drain -"});
}

TEST_CASE("the bubbles of every builder's schedule add up to its idle time",
          "[scheduler][simulate]") {
  Costs costs{
      .stages = {
          .usual = {.forward = 2, .backward = 5, .backward_input = 3, .backward_weight = 2}}};
  costs.links.usual = {.latency = 0.5, .bandwidth = 4};
  costs.links.bytes = 3;
  for (const BuilderInfo& builder : builders()) {
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    CAPTURE(builder.name);
    const Schedule schedule = build_schedule(builder.name, request);
    const Timeline timeline = simulate(schedule, schedule.stage_graph(), costs);
    std::vector<double> sums(timeline.rows.size());
    for (const Bubble& bubble : list_bubbles(timeline)) {
      CHECK(bubble.end > bubble.start);
      sums[static_cast<std::size_t>(bubble.row)] += bubble.length();
    }
    for (std::size_t r = 0; r < sums.size(); ++r) {
      const RowTimeline& row = timeline.rows[r];
      CHECK(sums[r] == Catch::Approx(row.idle));
      CHECK(row.busy + row.idle == Catch::Approx(timeline.makespan));
      CHECK(row.bubbles.warm_up + row.bubbles.dependency + row.bubbles.transfer +
                row.bubbles.drain ==
            Catch::Approx(row.idle));
    }
  }
}

TEST_CASE("bytes peak where most activations are held, as V30 counts them",
          "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(4, 8);
  const MemoryModel memory{
      .fixed = {100, 0, 0, 0}, .activations = {10, 10, 10, 10}, .transient = {1, 1, 1, 1}};
  const Timeline timeline =
      simulate(schedule, schedule.stage_graph(), {.stages = {.memory = memory}});
  CHECK(timeline.rows[0].peak_bytes == 100 + 4 * 10 + 1);
  CHECK(timeline.rows[3].peak_bytes == 10 + 1);
  CHECK(timeline.rows[0].entries[0].bytes == 100 + 10 + 1);
  for (const double budget : {140.0, 141.0}) {
    MemoryModel limited = memory;
    limited.budget = budget;
    CHECK(validate(schedule, schedule.stage_graph(), {.memory = limited}).empty() ==
          (budget == 141.0));
  }
}

TEST_CASE("rows that never run at the same time do not notice that they share a processor",
          "[scheduler][simulate]") {
  const Schedule schedule = one_f_one_b(3, 1);
  Costs costs;
  costs.links.usual = {.latency = 0.25};
  Costs shared = costs;
  shared.device.processors = 1;
  const Timeline alone = simulate(schedule, schedule.stage_graph(), costs);
  const Timeline together = simulate(schedule, schedule.stage_graph(), shared);
  CHECK(together.makespan == alone.makespan);
  CHECK(together.critical_path == alone.critical_path);
  CHECK(together.rows[1].entries[1].start == alone.rows[1].entries[1].start);
}

TEST_CASE("rows that share processors take as long as there is work for these",
          "[scheduler][simulate]") {
  const Schedule schedule = gpipe(4, 8);
  Costs costs;
  costs.device = {.threads = 2, .processors = 4};  // enough for two rows at a time
  const Timeline shared = simulate(schedule, schedule.stage_graph(), costs);
  const double work = 4 * 8 * 3;
  CHECK(shared.makespan >= work / 2);
  costs.device.processors = 8;
  CHECK(simulate(schedule, schedule.stage_graph(), costs).makespan == 33);
  // Computed by hand: F0 alone, then two at half speed each.
  costs.device = {.threads = 1, .processors = 1};
  const Timeline two = simulate(gpipe(2, 2), StageGraph::chain(2), costs);
  CHECK(two.rows[0].entries[1].end == 3);
  CHECK(two.rows[1].entries[0].end == 3);
  CHECK(two.makespan == 12);
}

TEST_CASE("cells that wait for each other are found on shared processors too",
          "[scheduler][simulate]") {
  const Schedule schedule = Schedule::parse("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n").to_list();
  Costs costs;
  costs.device.processors = 1;
  CHECK_THAT(refusal([&] { (void)simulate(schedule, StageGraph::chain(2), costs); },
                     Errc::ScheduleInvalid),
             Catch::Matchers::ContainsSubstring("wait for each other forever"));
}

}  // namespace
}  // namespace stagecraft
