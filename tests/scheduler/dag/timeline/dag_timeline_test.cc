#include "stagecraft/scheduler/dag/timeline/dag_timeline.h"

#include <map>
#include <string>
#include <vector>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/timeline/chunk_shares.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

DagTimeline timeline_of_text(const DagSource& source,
                             const std::string& strategy,
                             const DagCosts& costs) {
  return timeline_of(issue(apply(parse_strategy(strategy), source)), costs);
}

TEST_CASE("a schedule without groups takes the time that simulate() says", "[scheduler][dag]") {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "zb-h2", "zb-v"}) {
    CAPTURE(name);
    const Schedule schedule = build_schedule(name, {.devices = 4, .microbatches = 8});
    const Layout layout = Layout::of(schedule);
    const StageGraph graph = layout.expand(schedule.stage_graph());
    DagCosts costs;
    costs.costs.stages.usual = {
        .forward = 1, .backward = 2.5, .backward_input = 1.5, .backward_weight = 1};
    const Timeline expected = simulate(schedule, graph, costs.costs);
    const DagTimeline found = timeline_of(
        issue(apply(strategy_of(schedule, layout), bare_source(schedule.stage_graph()))), costs);
    CHECK(found.makespan == Catch::Approx(expected.makespan));
    REQUIRE(found.lists.size() == 4);
    for (const DagTimeline::List& list : found.lists) {
      CHECK(list.communicating == 0.0);
    }
  }
}

TEST_CASE("a transfer takes the time of its link", "[scheduler][dag]") {
  const std::string two = "split {} dim=MB n=1\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n";
  DagCosts costs;
  costs.costs.links.usual = {.latency = 0.5, .bandwidth = 8};
  costs.costs.links.bytes = 4;
  const DagTimeline found = timeline_of_text(bare_source(StageGraph::chain(2)), two, costs);
  CHECK(found.makespan == 2 * (1 + 2) + 2 * (0.5 + 4.0 / 8));
  CHECK(found.lists[0].communicating == 1.0);
  CHECK(found.lists[0].hidden == 0.0);
}

/// One stage: a chunk, experts, and a chunk that reads them.
DagSource source_with_experts() {
  DagSource source = bare_source(StageGraph::chain(1));
  source.chunks[0] = {{.parameter_bytes = 12},
                      {.regions = {{"EP", 0}}, .reads = {0}, .parameter_bytes = 12},
                      {.reads = {1}, .parameter_bytes = 12}};
  return source;
}

const std::string kExperts =
    "split {} dim=MB n=2\nplace {PP:0} on [0,1]\nreplicate {PP:0} on [0,1]\n"
    "shard {EP:*} on [0,1]\n";
const std::string kInTurns =
    "order [{PP:0,MB:0,PASS:F}] [{PP:0,MB:0,PASS:B}] [{PP:0,MB:1,PASS:F}] [{PP:0,MB:1,PASS:B}]\n";
const std::string kOverlapping =
    "order [{PP:0,MB:0,PASS:F}] [{PP:0,MB:0,PASS:B},{PP:0,MB:1,PASS:F}] [{PP:0,MB:1,PASS:B}]\n";

/// A forward takes 3, a backward 6, each in three parts with an exchange at both ends of the
/// middle one.
DagCosts three_parts() {
  DagCosts costs{.costs = {}, .exchange = 1};
  costs.costs.stages.usual = {.forward = 3, .backward = 6};
  return costs;
}

TEST_CASE("exchanges run under the tasks of an overlap group", "[scheduler][dag][experts]") {
  const DagTimeline apart =
      timeline_of_text(source_with_experts(), kExperts + kInTurns, three_parts());
  CHECK(apart.makespan == 2 * (3 + 2) + 2 * (6 + 2));
  CHECK(apart.lists[0].computing == 18.0);
  CHECK(apart.lists[0].communicating == 8.0);
  CHECK(apart.lists[0].hidden == 0.0);
  const DagTimeline together =
      timeline_of_text(source_with_experts(), kExperts + kOverlapping, three_parts());
  CHECK(together.lists[0].communicating == 8.0);
  CHECK(together.lists[0].hidden >= 3.0);  // of the four exchanges of the group
  CHECK(together.makespan == 18.0 + 8.0 - together.lists[0].hidden);
}

TEST_CASE("chunks take the parts of their operators where the costs have them",
          "[scheduler][dag]") {
  DagSource source = source_with_experts();
  source.graph.set_needs_input_grad(StageId(0), true);
  source.chunks[0][0].operators = {"a", "b"};
  source.chunks[0][1].operators = {"c"};
  source.chunks[0][2].operators = {"d"};
  DagCosts costs = three_parts();
  const auto add = [&](const char* name, double forward, double input, double weight) {
    costs.costs.operators.push_back({.id = static_cast<int>(costs.costs.operators.size()),
                                     .name = name,
                                     .stage = StageId(0),
                                     .forward = forward,
                                     .backward_input = input,
                                     .backward_weight = weight});
  };
  add("a", 1, 1, 0);
  add("b", 1, 0, 2);
  add("c", 4, 3, 0);
  add("d", 2, 0, 2);
  const auto parts = [&] {
    const ChunkShares shares(source, costs.costs);
    std::vector<std::vector<double>> of_kinds;
    for (const CellKind kind : {CellKind::Forward,
                                CellKind::Backward,
                                CellKind::BackwardInput,
                                CellKind::BackwardWeight}) {
      std::vector<double>& of_chunks = of_kinds.emplace_back();
      for (int chunk = 0; chunk < 3; ++chunk) {
        of_chunks.push_back(shares.of(StageId(0), chunk, kind));
      }
    }
    return of_kinds;
  };
  using Parts = std::vector<std::vector<double>>;
  CHECK(parts() == Parts{{0.25, 0.5, 0.25}, {0.375, 0.375, 0.25}, {0.25, 0.75, 0}, {0.5, 0, 0.5}});
  source.graph.set_needs_input_grad(StageId(0), false);  // W does all
  CHECK(parts()[3] == parts()[1]);
  const std::vector<double> equal(3, 1.0 / 3);
  costs.costs.operators.back().name = "of another model";
  CHECK(parts() == Parts(4, equal));
  costs.costs.operators.back() = {.id = 3, .name = "d", .stage = StageId(1), .forward = 2};
  CHECK(parts() == Parts(4, equal));
}

TEST_CASE("sums and gathers take the time of their bytes", "[scheduler][dag]") {
  DagCosts costs = three_parts();
  costs.exchange = 0;
  costs.costs.links.sums = Link{.latency = 0, .bandwidth = 6};
  const DagTimeline whole = timeline_of_text(source_with_experts(), kExperts + kInTurns, costs);
  // Two buckets of 12 bytes are summed, 12 bytes in and out for each rank, divided by 6.
  CHECK(whole.lists[0].communicating == 4.0);
  std::string shards = kExperts + kInTurns;
  shards.replace(shards.find("on [0,1]\nshard"), 8, "on [0,1] shard_params");
  const DagTimeline shared = timeline_of_text(source_with_experts(), shards, costs);
  // Gathers of 1 each: for F0 and B0, F1 and B1 of the last chunk, and for F0, B0 and F1, and B1 of
  // the first one. Scatters of 1: after each backward of both.
  CHECK(shared.lists[0].communicating == 2 + 3 + 4.0);
  CHECK(shared.makespan == 18.0 + shared.lists[0].communicating - shared.lists[0].hidden);
}

TEST_CASE("copies of a part sum its bytes by themselves", "[scheduler][dag][experts]") {
  DagCosts costs;
  costs.costs.links.sums = Link{.latency = 0, .bandwidth = 1};
  const std::string four =
      "split {} dim=MB n=1\nplace {PP:0} on [0,1,2,3]\nreplicate {PP:0} on [0,1,2,3]\n";
  const double whole = 2 * 3.0 / 4 * 12;  // of a bucket
  CHECK(timeline_of_text(source_with_experts(), four, costs).lists[0].communicating == 3 * whole);
  const DagTimeline parts =
      timeline_of_text(source_with_experts(), four + "shard {EP:*} on [0,1,2,3] n=2\n", costs);
  CHECK(parts.lists[0].communicating == 2 * whole + 2 * 1.0 / 2 * 6);
}

TEST_CASE("copies in a schedule begin their sum together", "[scheduler][dag]") {
  const Schedule schedule = build_schedule("chimera", {.devices = 2, .microbatches = 2});
  const Layout layout = Layout::of(schedule);
  DagSource source = bare_source(layout.expand(StageGraph::chain(2)));
  for (auto& chunks : source.chunks) {
    chunks.front().parameter_bytes = 8;
  }
  DagCosts costs;
  costs.costs.links.sums = Link{.latency = 0, .bandwidth = 1};
  const IssuedDag issued = issue(apply(strategy_of(schedule, layout), source));
  const DagTimeline found = timeline_of(issued, costs);
  std::map<int, double> starts;  // by bucket
  for (int n = 0; n < issued.dag.size(); ++n) {
    const DagNode& node = issued.dag.node(n);
    if (node.kind != DagKind::AllReduce) {
      continue;
    }
    const DagTimeline::Span& span = found.nodes[static_cast<std::size_t>(n)];
    CHECK(span.end - span.start == 2 * 1.0 / 2 * 8);
    CHECK(starts.try_emplace(node.bucket, span.start).first->second == span.start);
  }
  CHECK(starts.size() == 2);
}

}  // namespace
}  // namespace stagecraft
