/// Tests the graph that a strategy makes: its nodes and edges, and the faults of wrong strategies.
#include "stagecraft/scheduler/dag/directives/apply.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/issue/stream_order.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;

TrainingDag applied(const std::string& text, const StageGraph& graph) {
  return apply(parse_strategy(text), bare_source(graph));
}

/// Returns the message with which a strategy is refused.
std::string refusal_by(const DagSource& source, const std::string& text) {
  try {
    static_cast<void>(apply(parse_strategy(text), source));
  } catch (const Error& error) {
    CHECK(error.code() == Errc::ScheduleInvalid);
    return error.message();
  }
  FAIL("the strategy was taken");
  return {};
}

std::string refusal_of(const std::string& text, const StageGraph& graph = StageGraph::chain(2)) {
  return refusal_by(bare_source(graph), text);
}

/// Returns the strategy that puts each stage of a chain on a rank of its own.
std::string one_rank_each(int stages, int microbatches) {
  std::string text = "split {} dim=MB n=" + std::to_string(microbatches) + "\n";
  for (int s = 0; s < stages; ++s) {
    text += "place {PP:" + std::to_string(s) + "} on [" + std::to_string(s) + "]\n";
  }
  return text;
}

TEST_CASE("a pipeline sends each activation and each gradient once", "[scheduler][dag]") {
  const int stages = GENERATE(2, 3, 5, 8);
  const int microbatches = GENERATE(1, 2, 7);
  const TrainingDag dag = applied(one_rank_each(stages, microbatches), StageGraph::chain(stages));
  const auto tasks = static_cast<std::size_t>(stages * microbatches);
  const auto transfers = static_cast<std::size_t>(2 * (stages - 1) * microbatches);
  CHECK(dag.count(DagKind::Forward) == tasks);
  CHECK(dag.count(DagKind::Backward) == tasks);
  CHECK(dag.count(DagKind::Send) == transfers);
  CHECK(dag.count(DagKind::Receive) == transfers);
  CHECK(dag.count(DagKind::Update) == static_cast<std::size_t>(stages));
  CHECK(dag.count(DagKind::Vote) == static_cast<std::size_t>(stages));
}

TEST_CASE("a list of ranks that is refused leaves nothing behind", "[scheduler][dag][bad-input]") {
  // Rank 1 is in no list: the list that named it first was refused for rank 2.
  const std::string told = refusal_of(
      "split {} dim=MB n=1\nplace {PP:0} on [0,2]\nplace {PP:1} on [1,2]\n"
      "place {PP:1} on [1]\n");
  CHECK_THAT(told, ContainsSubstring("rank 2 is in [0,2] too"));
  CHECK_THAT(told, !ContainsSubstring("rank 1 is in"));
}

TEST_CASE("a step that is too large is refused before it is laid out",
          "[scheduler][dag][bad-input]") {
  CHECK_THAT(refusal_of(one_rank_each(2, 16'777'216)),
             ContainsSubstring("has 33554432 forwards, at most 2097152"));
}

TEST_CASE("a send and its receive have no edge, and each names the other (DG-1)",
          "[scheduler][dag]") {
  const TrainingDag dag = applied(one_rank_each(3, 4), StageGraph::from_edges(3, {{0, 2}, {1, 2}}));
  for (const DagEdge& edge : dag.edges) {
    CHECK(dag.node(edge.from).place == dag.node(edge.to).place);
  }
  for (int n = 0; n < dag.size(); ++n) {
    if (is_transfer(dag.node(n).kind)) {
      const DagNode& peer = dag.node(dag.node(n).peer);
      CHECK(peer.peer == n);
      CHECK(peer.kind != dag.node(n).kind);
      CHECK(peer.tensor == dag.node(n).tensor);
      CHECK(peer.gradient == dag.node(n).gradient);
    }
  }
}

TEST_CASE("two replicas of two stages sum each stage's gradients once", "[scheduler][dag]") {
  const TrainingDag dag = applied(
      "split     {}     dim=MB n=2\n"
      "place     {PP:0} on [0,2] stream=pp\n"
      "place     {PP:1} on [1,3] stream=pp\n"
      "replicate {PP:0} on [0,2] reduce_stream=dp\n"
      "replicate {PP:1} on [1,3] reduce_stream=dp\n"
      "order [{PP:0,MB:0,PASS:F}] [{PP:0,MB:1,PASS:F}] [{PP:0,MB:0,PASS:B}] [{PP:0,MB:1,PASS:B}]\n"
      "order [{PP:1,MB:0,PASS:F}] [{PP:1,MB:0,PASS:B}] [{PP:1,MB:1,PASS:F}] [{PP:1,MB:1,PASS:B}]\n",
      StageGraph::chain(2));
  CHECK(dag.count(DagKind::Forward) == 4);
  CHECK(dag.count(DagKind::Backward) == 4);
  CHECK(dag.count(DagKind::Send) == 4);
  CHECK(dag.count(DagKind::Receive) == 4);
  CHECK(dag.count(DagKind::AllReduce) == 2);
  CHECK(dag.count(DagKind::Update) == 2);
  CHECK(dag.places == std::vector<std::vector<Rank>>{{Rank(0), Rank(2)}, {Rank(1), Rank(3)}});
  CHECK(dag.streams == std::vector<std::string>{"compute", "pp", "dp"});
}

TEST_CASE("halves of backwards are one input half and one weight half for each task",
          "[scheduler][dag]") {
  const int stages = 3;
  const int microbatches = 4;
  Strategy strategy = parse_strategy(one_rank_each(stages, microbatches));
  for (int s = 0; s < stages; ++s) {
    std::vector<OrderDirective::Group> groups;
    for (int m = 0; m < microbatches; ++m) {
      groups.push_back({filters::forward(s, m)});
    }
    for (int m = 0; m < microbatches; ++m) {
      groups.push_back({filters::backward_input(s, m)});
      groups.push_back({filters::backward_weight(s, m)});
    }
    strategy.order(std::move(groups));
  }
  const TrainingDag dag = apply(strategy, bare_source(StageGraph::chain(stages)));
  CHECK(dag.count(DagKind::Backward) == 0);
  CHECK(dag.count(DagKind::Input) == 12);
  CHECK(dag.count(DagKind::Weight) == 12);
  CHECK(dag.count(DagKind::Send) == 16);
  for (const DagEdge& edge : dag.edges) {  // gradients leave from input halves alone
    CHECK_FALSE(
        (dag.node(edge.from).kind == DagKind::Weight && is_transfer(dag.node(edge.to).kind)));
  }
}

TEST_CASE("an expert chunk exchanges samples four times per stage and microbatch",
          "[scheduler][dag]") {
  const int stages = GENERATE(1, 3);
  const int microbatches = GENERATE(1, 4);
  DagSource source = bare_source(StageGraph::chain(stages));
  for (int s = 0; s < stages; ++s) {
    source.chunks[static_cast<std::size_t>(s)] = {
        {.parameter_bytes = 8},
        {.regions = {{"EP", 0}}, .reads = {0}, .parameter_bytes = 8},
        {.reads = {1}, .parameter_bytes = 8}};
  }
  for (DagTensor& tensor : source.tensors) {
    tensor.from_chunk = 2;
  }
  Strategy strategy;
  strategy.split({}, microbatches);
  for (int s = 0; s < stages; ++s) {
    const std::vector<Rank> ranks{Rank(2 * s), Rank(2 * s + 1)};
    strategy.place(filters::stage(s), ranks).replicate(filters::stage(s), ranks);
    strategy.shard({.tags = {{"PP", s}, {"EP", std::nullopt}}, .pass = {}}, ranks, "ep");
  }
  const TrainingDag dag = apply(strategy, source);
  CHECK(dag.count(DagKind::AllToAll) == static_cast<std::size_t>(4 * stages * microbatches));
}

/// One stage: a chunk, experts, and a chunk that reads them.
DagSource with_experts() {
  DagSource source = bare_source(StageGraph::chain(1));
  source.chunks[0] = {{.parameter_bytes = 8},
                      {.regions = {{"EP", 0}}, .reads = {0}, .parameter_bytes = 8},
                      {.reads = {1}, .parameter_bytes = 8}};
  return source;
}

TEST_CASE("a divided chunk is a bucket of its own, which no rank sums or gathers",
          "[scheduler][dag]") {
  const std::vector<Rank> ranks{Rank(0), Rank(1)};
  const bool shards = GENERATE(false, true);
  Strategy strategy;
  strategy.split({}, 3).place(filters::stage(0), ranks);
  strategy.replicate(filters::stage(0), ranks, {.shard_parameters = shards});
  strategy.shard({.tags = {{"EP", std::nullopt}}, .pass = {}}, ranks);
  const TrainingDag dag = apply(strategy, with_experts());
  REQUIRE(dag.buckets.size() == 3);
  for (const DagBucket& bucket : dag.buckets) {
    CHECK(bucket.is_divided() == (bucket.first_chunk == 1));
    CHECK(bucket.chunks == 1);
  }
  for (const DagNode& node : dag.nodes) {
    if (is_collective(node.kind) && node.kind != DagKind::AllToAll) {
      CHECK(node.chunk != 1);
    }
  }
  CHECK(dag.count(DagKind::Update) == 3);
  CHECK(dag.count(DagKind::AllReduce) == (shards ? 0U : 2U));
  CHECK(dag.count(DagKind::AllToAll) == 12);
}

TEST_CASE("copies of parts of a divided chunk are summed, and share nothing", "[scheduler][dag]") {
  const std::vector<Rank> ranks{Rank(0), Rank(1), Rank(2), Rank(3)};
  const bool shards = GENERATE(false, true);
  Strategy strategy;
  strategy.split({}, 3).place(filters::stage(0), ranks);
  strategy.replicate(filters::stage(0), ranks, {.shard_parameters = shards});
  strategy.shard({.tags = {{"EP", std::nullopt}}, .pass = {}}, ranks, {}, 2);
  const TrainingDag dag = apply(strategy, with_experts());
  REQUIRE(dag.buckets.size() == 3);
  for (const DagBucket& bucket : dag.buckets) {
    CHECK(bucket.parts == (bucket.first_chunk == 1 ? 2 : 1));
  }
  for (const DagNode& node : dag.nodes) {
    if (node.chunk == 1 && is_collective(node.kind)) {
      CHECK((node.kind == DagKind::AllToAll || node.kind == DagKind::AllReduce));
    }
  }
  CHECK(dag.count(DagKind::AllReduce) == (shards ? 1U : 3U));
  CHECK(dag.count(DagKind::AllToAll) == 12);
}

TEST_CASE("what cannot be sharded is told with its directive", "[scheduler][dag]") {
  const auto told = [](const DagSource& source, const std::string& lines, int ranks = 2) {
    const std::string place = ranks == 1 ? "[0]" : "[0,1]";
    return refusal_by(source, "split {} dim=MB n=2\nplace {PP:0} on " + place + "\n" + lines);
  };
  const std::string copies = "replicate {PP:0} on [0,1]\n";
  CHECK_THAT(told(with_experts(), "shard {EP:*} on [0]\n", 1),
             ContainsSubstring("one rank divides nothing"));
  for (const std::string parts : {"n=1", "n=3", "n=4"}) {
    CHECK_THAT(told(with_experts(), copies + "shard {EP:*} on [0,1] " + parts + "\n"),
               ContainsSubstring("do not divide among") && ContainsSubstring("directive 4"));
  }
  const std::string four =
      "split {} dim=MB n=2\nplace {PP:0} on [0,1,2,3]\nreplicate {PP:0} on [0,1,2,3]\n";
  CHECK_THAT(refusal_by(with_experts(), four + "shard {EP:*} on [0,2,1,3] n=2\n"),
             ContainsSubstring("in ascending order"));
  CHECK_THAT(refusal_by(with_experts(),
                        "split {} dim=MB n=2\nplace {PP:0} on [1,0]\n"
                        "replicate {PP:0} on [1,0]\nshard {EP:*} on [1,0]\n"),
             ContainsSubstring("in ascending order, also in place and replicate"));
  CHECK_THAT(refusal_by(with_experts(),
                        "split {} dim=MB n=2\nplace {PP:0} on [1,0]\n"
                        "replicate {PP:0} on [1,0]\nshard {EP:*} on [0,1]\n"),
             ContainsSubstring("is placed on other ranks") && ContainsSubstring("directive 4"));
  CHECK_THAT(told(with_experts(), copies + "shard {EP:*} on [0,2]\n"),
             ContainsSubstring("is placed on other ranks"));
  CHECK_THAT(told(with_experts(), copies + "shard {EP:*,MB:0} on [0,1]\n"),
             ContainsSubstring("leave MB and PASS out"));
  CHECK_THAT(told(with_experts(), copies + "shard {EP:*} on [0,1]\nshard {EP:0} on [0,1]\n"),
             ContainsSubstring("is sharded already"));
  DagSource idle = with_experts();
  idle.chunks[0][1].parameter_bytes = 0;
  CHECK_THAT(told(idle, copies + "shard {EP:*} on [0,1]\n"),
             ContainsSubstring("trains no weights"));
  DagSource beside = with_experts();
  beside.chunks[0][2] = {.regions = {{"EP", 1}}, .reads = {0}, .parameter_bytes = 8};
  CHECK_THAT(told(beside, copies + "shard {EP:*} on [0,1]\n"),
             ContainsSubstring("regions right behind each other"));
}

TEST_CASE("every builder's schedule becomes a graph that runs each row in its order",
          "[scheduler][dag]") {
  for (const BuilderInfo& builder : builders()) {
    INFO(builder.name);
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const Schedule schedule = build_schedule(builder.name, request);
    const Layout layout = Layout::of(schedule);
    TrainingDag dag = apply(strategy_of(schedule, layout), bare_source(schedule.stage_graph()));
    const std::vector<StreamOrder> orders = order_streams(dag);
    const Schedule named = layout.with_step_microbatches(schedule);
    for (std::size_t row = 0; row < named.rows().size(); ++row) {
      std::vector<Task> tasks, ordered;
      for (const Cell& cell : named.rows()[row]) {
        for (const Task& task : cell.tasks()) {
          if (task.kind != CellKind::Update && !cell.is_group()) {
            tasks.push_back(task);
          }
        }
      }
      const auto place = std::ranges::find(dag.places, std::vector{Rank(row)}) - dag.places.begin();
      for (const int n : orders[static_cast<std::size_t>(place)].streams[kComputeStream]) {
        if (computes(dag.node(n).kind) && dag.node(n).overlap == kNone) {
          ordered.push_back(dag.node(n).task());
        }
      }
      CHECK(ordered == tasks);
    }
  }
}

TEST_CASE("copies of a stage in a schedule sum their gradients", "[scheduler][dag]") {
  const Schedule schedule = build_schedule("chimera", {.devices = 4, .microbatches = 8});
  const TrainingDag dag =
      apply(strategy_of(schedule, Layout::of(schedule)), bare_source(schedule.stage_graph()));
  CHECK(dag.buckets.size() == 4);  // one for each stage of the model
  CHECK(dag.count(DagKind::AllReduce) == 8);
  CHECK(dag.count(DagKind::Update) == 8);
  for (const DagBucket& bucket : dag.buckets) {
    CHECK(bucket.stages.size() == 2);
  }
}

TEST_CASE("gradients of tied stages are summed on every rank that has one", "[scheduler][dag]") {
  StageGraph graph = StageGraph::chain(3);
  graph.add_tied({.name = "embed.weight", .stages = {StageId(0), StageId(2)}, .reduced = true});
  const TrainingDag dag = applied(one_rank_each(3, 2), graph);
  CHECK(dag.count(DagKind::AllReduce) == 2);
  const TrainingDag together = applied(
      "split {} n=2\nplace {PP:0} on [0]\nplace {PP:1} on [1]\nplace {PP:2} on [0]\n", graph);
  CHECK(together.count(DagKind::AllReduce) == 1);
}

TEST_CASE("buckets of a stage are divided from its last chunk on", "[scheduler][dag]") {
  DagSource source = bare_source(StageGraph::chain(1));
  source.chunks[0] = {{.parameter_bytes = 30},
                      {.reads = {0}, .parameter_bytes = 50},
                      {.reads = {1}, .parameter_bytes = 0},
                      {.reads = {2}, .parameter_bytes = 60},
                      {.reads = {3}, .parameter_bytes = 40}};
  Strategy strategy;
  strategy.split({}, 2)
      .place(filters::stage(0), {Rank(0), Rank(1)})
      .replicate(filters::stage(0), {Rank(0), Rank(1)}, {.bucket_bytes = 100});
  const TrainingDag dag = apply(strategy, source);
  REQUIRE(dag.buckets.size() == 2);
  CHECK(dag.buckets[0].first_chunk == 0);
  CHECK(dag.buckets[0].bytes == 80);
  CHECK(dag.buckets[1].first_chunk == 3);
  CHECK(dag.buckets[1].bytes == 100);
  CHECK(dag.count(DagKind::AllReduce) == 2);
  CHECK(dag.count(DagKind::Update) == 2);
}

TEST_CASE("a strategy is refused with its directive, its filter and what to do",
          "[scheduler][dag]") {
  const std::string placed = "split {} n=2\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n";
  CHECK_THAT(refusal_of("split {} n=2\nplace {PP:0} on [0]\n"),
             ContainsSubstring("stage 1 is placed nowhere: add place {PP:1} on [...]"));
  CHECK_THAT(
      refusal_of(placed + "order [{PP:5,MB:0,PASS:F}]\n"),
      ContainsSubstring("directive 4 (line 4), order [{PP:5,MB:0,PASS:F}]: {PP:5,MB:0,PASS:F} "
                        "matches nothing: there are 2 stages and 2 microbatches"));
  CHECK_THAT(refusal_of(placed + "order [{EP:0}]\n"),
             ContainsSubstring("{EP:0} names the tag EP, and the model has MB, PP"));
  CHECK_THAT(refusal_of(placed + "order [{PP:0,MB:0,PASS:F}] [{PP:1,MB:0,PASS:F}]\n"),
             ContainsSubstring("it orders nodes on [0] and on [1]"));
  CHECK_THAT(refusal_of(placed + "order [{PP:0,MB:0,PASS:B}] [{PP:0,MB:0,PASS:F}]\n"),
             ContainsSubstring("close a cycle"));
  CHECK_THAT(refusal_of(placed + "order [{PP:0,MB:0}] [{PP:0,MB:1}]\n"),
             ContainsSubstring("{PP:0,MB:0} is not contiguous"));
  CHECK_THAT(
      refusal_of("split {} n=2\nplace {PP:0} on [0,1]\nplace {PP:1} on [1]\n"),
      ContainsSubstring("directive 3 (line 3), place {PP:1} on [1]: rank 1 is in [0,1] too"));
  CHECK_THAT(refusal_of("split {} n=2\nplace {PP:0} on [0,0]\nplace {PP:1} on [1]\n"),
             ContainsSubstring("rank 0 is named twice"));
  CHECK_THAT(refusal_of(placed + "place {PP:*} on [2]\n"),
             ContainsSubstring("is placed on [0] already"));
  CHECK_THAT(
      refusal_of("split {} n=2\nplace {PP:0} on [0] stream=a\nplace {PP:1} on [1] stream=b\n"),
      ContainsSubstring("transfers are on stream a already"));
  CHECK_THAT(refusal_of(placed + "replicate {PP:0} on [0,2]\n"),
             ContainsSubstring("is placed on [0]: replicate it on the ranks of its place"));
  CHECK_THAT(refusal_of("split {} n=2\nplace {PP:0} on [0,2]\nplace {PP:1} on [1]\n"),
             ContainsSubstring("stage 0 is on [0,2] and nothing keeps its copies equal: add "
                               "replicate {PP:0} on [0,2]"));
  CHECK_THAT(refusal_of(placed + "split {} n=3\n"), ContainsSubstring("the step is split already"));
  CHECK_THAT(refusal_of("split {PP:0} n=2\nplace {PP:*} on [0]\n"),
             ContainsSubstring("only the whole step is split"));
}

TEST_CASE("a fault counts directives from 1, and has the line of a file", "[scheduler][dag]") {
  // A comment and a blank line have no directive.
  CHECK_THAT(refusal_of("# two stages\n\nsplit {} n=2\nplace {PP:0} on [0]\nplace {PP:0} on [1]\n"
                        "place {PP:1} on [1]\n"),
             ContainsSubstring("directive 3 (line 5), place {PP:0} on [1]: "));
  Strategy made;
  made.split({}, 2).place(filters::stage(0), {Rank(0)}).place(filters::stage(7), {Rank(1)});
  CHECK_THROWS_WITH(static_cast<void>(apply(made, bare_source(StageGraph::chain(1)))),
                    ContainsSubstring("directive 3, place {PP:7} on [1]: "));
}

TEST_CASE("stages without a place are told as ranges", "[scheduler][dag]") {
  CHECK_THAT(refusal_of("place {PP:0} on [0]\nplace {PP:1} on [1]\nplace {PP:6} on [2]\n",
                        StageGraph::chain(9)),
             ContainsSubstring(
                 "stages 2 to 5, 7, 8 are placed nowhere: add place {PP:2} on [...], and so on"));
}

TEST_CASE("halves that do not fit are refused", "[scheduler][dag]") {
  const std::string placed = "split {} n=1\nplace {PP:*} on [0]\n";
  CHECK_THAT(refusal_of(placed + "order [{PP:0,MB:0,PASS:BI}]\n"),
             ContainsSubstring("needs one BI and one BW, found 1 and 0"));
  CHECK_THAT(refusal_of(placed + "order [{PP:0,MB:0,PASS:BW}] [{PP:0,MB:0,PASS:BI}]\n"),
             ContainsSubstring("has its BW before its BI"));
  CHECK_THAT(refusal_of(placed + "order [{PP:0,MB:0,PASS:BI}] [{PP:0,MB:0,PASS:B}]\n"),
             ContainsSubstring("is named as a whole and in halves"));
  CHECK_THAT(refusal_of(placed + "order [{PP:0,MB:0,PASS:BI}] [{PP:1,MB:0,PASS:F}]\norder "
                                 "[{PP:0,MB:0,PASS:BW}] [{PP:1,MB:0,PASS:B}]\n"),
             ContainsSubstring("has its halves in two orders"));
}

TEST_CASE("all faults of a strategy are told at once", "[scheduler][dag]") {
  const std::string told =
      refusal_of("split {} n=2\nplace {PP:0} on [0]\norder [{PP:7,MB:0,PASS:F}]\norder [{XY:1}]\n");
  CHECK_THAT(told, ContainsSubstring("stage 1 is placed nowhere"));
  CHECK_THAT(told, ContainsSubstring("{PP:7,MB:0,PASS:F} matches nothing"));
  CHECK_THAT(told, ContainsSubstring("{XY:1} names the tag XY"));
}

TEST_CASE("two ranks that wait for each other are refused with the cycle", "[scheduler][dag]") {
  CHECK_THAT(refusal_of("split {} n=2\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n"
                        "order [{PP:0,MB:0,PASS:F}] [{PP:0,MB:0,PASS:B}] [{PP:0,MB:1,PASS:F}]\n"
                        "order [{PP:1,MB:1,PASS:F}] [{PP:1,MB:0,PASS:F}] [{PP:1,MB:0,PASS:B}]\n"),
             ContainsSubstring("close a cycle") && ContainsSubstring("send"));
}

TEST_CASE("tied stages with different numbers of copies are refused", "[scheduler][dag]") {
  StageGraph graph = StageGraph::chain(2);
  graph.add_tied({.name = "embed.weight", .stages = {StageId(0), StageId(1)}, .reduced = true});
  CHECK_THAT(refusal_of("split {} n=2\nplace {PP:0} on [0]\nplace {PP:1} on [1,2,3]\n"
                        "replicate {PP:1} on [1,2,3]\n",
                        graph),
             ContainsSubstring("stages 0, 1 share embed.weight and have 1 and 3 copies"));
}

/// Returns how many scatters two tied stages with two copies each have.
std::size_t scatters_of_tied(const std::string& first, const std::string& second) {
  StageGraph graph = StageGraph::chain(2);
  graph.add_tied({.name = "embed.weight", .stages = {StageId(0), StageId(1)}, .reduced = true});
  const TrainingDag dag = applied(
      "split {} n=1\nplace {PP:0} on [0,2]\nplace {PP:1} on [1,3]\n"
      "replicate {PP:0} on [0,2] " +
          first + "\nreplicate {PP:1} on [1,3] " + second + "\n",
      graph);
  return dag.count(DagKind::ReduceScatter);
}

TEST_CASE("DG-4: copies of tied stages share if they are asked for the same",
          "[scheduler][dag][strategies]") {
  const char* const level = GENERATE("shard_optimizer", "shard_grads", "shard_params");
  CHECK(scatters_of_tied(level, level) == 2);
  CHECK(scatters_of_tied(level, "") == 0);
  CHECK(scatters_of_tied("", level) == 0);
  CHECK(scatters_of_tied("shard_optimizer", "shard_params") == 0);
}

TEST_CASE("DG-4: a stage is whole with those that it is tied to, directly or over others",
          "[scheduler][dag][strategies]") {
  StageGraph graph = StageGraph::chain(4);
  graph.add_tied({.name = "a", .stages = {StageId(0), StageId(1)}, .reduced = true});
  graph.add_tied({.name = "b", .stages = {StageId(1), StageId(2)}, .reduced = true});
  std::string text = "split {} n=1\n";
  for (const auto& [stage, ranks, options] : {std::tuple("0", "[0,4]", "shard_optimizer"),
                                              std::tuple("1", "[1,5]", "shard_optimizer"),
                                              std::tuple("2", "[2,6]", ""),
                                              std::tuple("3", "[3,7]", "shard_optimizer")}) {
    text += fmt::format(
        "place {{PP:{0}}} on {1}\nreplicate {{PP:{0}}} on {1} {2}\n", stage, ranks, options);
  }
  const TrainingDag dag = applied(text, graph);
  for (const DagNode& node : dag.nodes) {
    CHECK((node.kind != DagKind::ReduceScatter || node.stage == StageId(3)));
  }
  CHECK(dag.count(DagKind::ReduceScatter) == 1);
}

/// Returns the graph of two copies of two stages that share a parameter.
StageGraph tied_copies() {
  const Schedule rows =
      Schedule::parse("@edges 0-1,2-3\n@replicas 0=2,1=3\n0F0 3F0 3B0 0B0\n2F0 1F0 1B0 2B0");
  StageGraph graph = rows.stage_graph();
  for (const int first : {0, 2}) {
    graph.add_tied(
        {.name = "embed.weight", .stages = {StageId(first), StageId(first + 1)}, .reduced = true});
  }
  return graph;
}

/// Returns the DAG of these copies, each stage on its ranks.
TrainingDag dag_of_copies(const std::vector<std::string>& ranks, const std::string& options) {
  std::string text = "split {} n=2\n";
  for (std::size_t stage = 0; stage < ranks.size(); ++stage) {
    text += fmt::format(
        "place {{PP:{0}}} on {1}\nreplicate {{PP:{0}}} on {1} {2}\n", stage, ranks[stage], options);
  }
  return applied(text, tied_copies());
}

TEST_CASE("DG-4: copies in a schedule are tied to those that have the same shards",
          "[scheduler][dag][strategies]") {
  using Stages = std::vector<StageId>;
  // Ranks 0 and 2 have the first copy of stage 0, and the second of stage 1.
  const std::vector<std::string> crossed{"[0,2]", "[1,3]", "[1,3]", "[0,2]"};
  const auto whole = dag_of_copies(crossed, "").source.ties;
  CHECK((whole[0].stages == Stages{StageId(0), StageId(1)}));
  const TrainingDag dag = dag_of_copies(crossed, "shard_optimizer");
  CHECK(dag.count(DagKind::ReduceScatter) == 4);
  CHECK((dag.source.ties[0].stages == Stages{StageId(0), StageId(3)}));
  CHECK((dag.source.ties[1].stages == Stages{StageId(2), StageId(1)}));
  // Shards of stage 0 are on ranks of copies 0 0 1 1, and of stage 1 on 0 1 0 1.
  const std::vector<std::string> unlike{"[0,1]", "[4,6]", "[2,3]", "[5,7]"};
  CHECK(dag_of_copies(unlike, "shard_optimizer").count(DagKind::ReduceScatter) == 0);
  CHECK(dag_of_copies({"[0,1]", "[4,5]", "[2,3]", "[6,7]"}, "shard_optimizer")
            .count(DagKind::ReduceScatter) == 4);
}

}  // namespace
}  // namespace stagecraft
