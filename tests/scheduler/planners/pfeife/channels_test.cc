#include "stagecraft/scheduler/planners/pfeife/channels.h"

#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

struct ChannelStep {
  double free = 0;
  double shared = 0;
};

/// Two stages with forward 10 and backward 20; a transfer takes `link`.
ChannelStep step_of(int microbatches, std::vector<int> extra, double link) {
  const Schedule schedule = pfeife(2, microbatches, {.extra = std::move(extra)});
  StepGraph graph(schedule, schedule.stage_graph(), {}, StepTransfers::Vertices);
  for (const StageId stage : {StageId(0), StageId(1)}) {
    graph.set_duration(stage, CellKind::Forward, 10);
    graph.set_duration(stage, CellKind::Backward, 20);
  }
  graph.set_transfer(0, link, link);
  ChannelStep step;
  step.free = graph.run();
  step.shared = share_channels(graph, Placement::of(schedule, 2));
  return step;
}

TEST_CASE("transfers of both directions share a channel in the best order",
          "[scheduler][planners]") {
  const auto check = [](const ChannelStep& step, double free, double shared) {
    CHECK(step.free == free);
    CHECK(step.shared == shared);
  };
  check(step_of(4, {1, 0}, 8), 166, 166);
  check(step_of(4, {1, 0}, 12), 174, 174);
  check(step_of(4, {1, 0}, 20), 200, 210);
  check(step_of(3, {0, 0}, 8), 152, 152);
  check(step_of(3, {1, 0}, 8), 136, 136);
}

/// Returns the step of a schedule of four stages whose transfers take time.
StepGraph step_with_transfers(const Schedule& schedule) {
  StepGraph graph(schedule, schedule.stage_graph(), {}, StepTransfers::Vertices);
  for (int s = 0; s < 4; ++s) {
    graph.set_duration(StageId(s), CellKind::Forward, 5 + s);
    graph.set_duration(StageId(s), CellKind::Backward, 9 + s);
  }
  for (std::size_t e = 0; e < graph.edges().size(); ++e) {
    graph.set_transfer(e, 7, 6);
  }
  return graph;
}

TEST_CASE("transfers on one channel never overlap and keep the order of one direction",
          "[scheduler][planners]") {
  const Schedule schedule = pfeife(2, 6, {.loops = 2, .block = 2, .extra = {1, 0}});
  StepGraph graph = step_with_transfers(schedule);
  const double free = graph.run();
  const Placement placement = Placement::of(schedule, 4);
  CHECK(share_channels(graph, placement) > free);
  std::vector<int> transfers;
  for (int v = 0; v < graph.vertices(); ++v) {
    if (graph.event(v).receiver != kNoStage) {
      transfers.push_back(v);
    }
  }
  REQUIRE(transfers.size() == 2 * 3 * 6);
  std::ranges::sort(transfers, {}, [&](int v) { return graph.start(v); });
  for (std::size_t i = 1; i < transfers.size(); ++i) {
    CHECK(graph.start(transfers[i]) >= graph.end(transfers[i - 1]));
  }
}

TEST_CASE("without time left, transfers share a channel in the order of their starts (HC-3)",
          "[scheduler][planners]") {
  const Schedule schedule = pfeife(2, 6, {.loops = 2, .block = 2, .extra = {1, 0}});
  const Placement placement = Placement::of(schedule, 4);
  const auto shared = [&](int looks) {
    StepGraph graph = step_with_transfers(schedule);
    const double time = share_channels(graph, placement, [&] { return looks-- <= 0; });
    std::vector<int> transfers;
    for (int v = 0; v < graph.vertices(); ++v) {
      if (graph.event(v).receiver != kNoStage) {
        transfers.push_back(v);
      }
    }
    std::ranges::sort(transfers, {}, [&](int v) { return graph.start(v); });
    for (std::size_t i = 1; i < transfers.size(); ++i) {
      CHECK(graph.start(transfers[i]) >= graph.end(transfers[i - 1]));
    }
    return time;
  };
  const double best = shared(1'000'000);
  for (const int looks : {0, 1, 3}) {
    CHECK(shared(looks) >= best);
  }
}

}  // namespace
}  // namespace stagecraft
