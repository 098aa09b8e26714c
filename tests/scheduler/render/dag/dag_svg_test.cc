#include "stagecraft/scheduler/render/dag/dag_svg.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/render/dag/dag_columns.h"
#include "stagecraft/scheduler/render/dag/dag_limits.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/scheduler/golden.h"
#include "stagecraft/tests/scheduler/occurrences.h"
#include "stagecraft/tests/scheduler/render/xml_fault.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

IssuedDag issued_by(const std::string& strategy, int stages) {
  return issue(apply(parse_strategy(strategy), bare_source(StageGraph::chain(stages))));
}

IssuedDag issued_by(const Schedule& schedule) {
  return issue(
      apply(strategy_of(schedule, Layout::of(schedule)), bare_source(schedule.stage_graph())));
}

IssuedDag two_by_two(const std::string& stream = "dp") {
  return issued_by(fmt::format("split {{}} dim=MB n=2\n"
                               "place {{PP:0}} on [0,2]\n"
                               "place {{PP:1}} on [1,3]\n"
                               "replicate {{PP:0}} on [0,2] reduce_stream={0}\n"
                               "replicate {{PP:1}} on [1,3] reduce_stream={0}\n",
                               stream),
                   2);
}

TEST_CASE("a picture of a DAG has each node, each lane and each transfer once",
          "[scheduler][render][dag]") {
  const IssuedDag issued = two_by_two();
  const std::string svg = render_dag_svg(issued);
  CHECK(!xml_fault(svg));
  for (int n = 0; n < issued.dag.size(); ++n) {
    CHECK(occurrences(svg, fmt::format("id=\"node-{}\"", n)) == 1);
  }
  CHECK(occurrences(svg, "class=\"node\"") == issued.dag.nodes.size());
  CHECK(occurrences(svg, "class=\"cluster\"") == 2);
  CHECK(occurrences(svg, "class=\"lane\"") == 8);  // compute, send, receive and dp, twice
  for (const char* stream : {"compute", "send", "receive", "dp"}) {
    CHECK(occurrences(svg, fmt::format("<title>stream {}</title>", stream)) == 2);
    CHECK(occurrences(svg, fmt::format(">stream {}</text>", stream)) == 1);  // the legend
  }
  CHECK(occurrences(svg, "class=\"line transfer\" data-from") == 4);
  for (const char* part : {">ranks [0,2]<", ">ranks [1,3]<", "all_reduce of stage 1"}) {
    CHECK_THAT(svg, ContainsSubstring(part));
  }
  check_golden("dag_2_2.svg", svg);
}

TEST_CASE("an edge of data hides an edge of order between the same nodes",
          "[scheduler][render][dag]") {
  IssuedDag issued = two_by_two();
  std::set<std::pair<int, int>> data, all;
  for (const DagEdge& edge : issued.dag.edges) {
    all.insert({edge.from, edge.to});
    if (edge.data) {
      data.insert({edge.from, edge.to});
    }
  }
  issued.dag.connect(data.begin()->first, data.begin()->second, false);
  const std::string svg = render_dag_svg(issued);
  CHECK(occurrences(svg, "class=\"line data\" data-from") == data.size());
  CHECK(occurrences(svg, "class=\"line order\" data-from") == all.size() - data.size());
}

TEST_CASE("nodes stand right of what they wait for, in the order of their list (DPI-1, DPI-2)",
          "[scheduler][render][dag]") {
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const IssuedDag issued = issued_by(build_schedule(builder.name, request));
    const std::vector<int> columns = drawing::dag_columns(issued);
    const auto column = [&](int n) { return columns[static_cast<std::size_t>(n)]; };
    bool right = true;
    for (const DagEdge& edge : issued.dag.edges) {
      right = right && column(edge.from) < column(edge.to);
    }
    for (int n = 0; n < issued.dag.size(); ++n) {
      const DagNode& node = issued.dag.node(n);
      right = right && (node.kind != DagKind::Send || column(n) < column(node.peer));
    }
    CHECK(right);
    std::set<std::tuple<int, int, int>> taken;
    for (std::size_t place = 0; place < issued.lists.size(); ++place) {
      int last = 0;
      for (const int n : issued.lists[place]) {
        right = right && column(n) >= last;
        last = column(n);
        taken.insert({static_cast<int>(place), issued.dag.node(n).stream, last});
      }
    }
    CHECK(right);
    CHECK(taken.size() == issued.dag.nodes.size());
    if (issued.dag.size() <= kMaxDrawnNodes) {
      CHECK(!xml_fault(render_dag_svg(issued)));
    }
  }
}

TEST_CASE("lists that wait for each other's transfers are drawn all the same (DPI-2)",
          "[scheduler][render][dag]") {
  // Each list receives before it sends.
  TrainingDag dag;
  dag.source = bare_source(StageGraph::chain(2));
  dag.places = {{Rank(0)}, {Rank(1)}};
  dag.streams = {"compute", "pp"};
  for (const int stage : {0, 1}) {
    dag.add({.kind = DagKind::Receive,
             .stage = StageId(stage),
             .microbatch = Microbatch(0),
             .place = stage,
             .stream = 1,
             .peer = 3 - 2 * stage});
    dag.add({.kind = DagKind::Send,
             .stage = StageId(stage),
             .microbatch = Microbatch(0),
             .place = stage,
             .stream = 1,
             .peer = 2 - 2 * stage});
  }
  const IssuedDag issued{.dag = dag, .streams = {}, .lists = {{0, 1}, {2, 3}}};
  const std::string svg = render_dag_svg(issued);
  CHECK(!xml_fault(svg));
  CHECK(occurrences(svg, "class=\"node\"") == 4);
}

TEST_CASE("collectives of sharded parameters say their chunk", "[scheduler][render][dag]") {
  DagSource source = bare_source(StageGraph::chain(1));
  source.chunks[0] = {{.parameter_bytes = 8}, {.reads = {0}, .parameter_bytes = 8}};
  const std::string svg = render_dag_svg(
      issue(apply(parse_strategy("split {} dim=MB n=2\nplace {PP:0} on [0,1]\n"
                                 "replicate {PP:0} on [0,1] shard_params bucket_size=8\n"),
                  source)));
  CHECK(!xml_fault(svg));
  for (const char* part :
       {">all_gather<", ">stage 0.1<", ">scatter<", "reduce_scatter of stage 0", ">0F1.1<"}) {
    CHECK_THAT(svg, ContainsSubstring(part));
  }
}

TEST_CASE("what does nothing is an empty node", "[scheduler][render][dag][surplus]") {
  StageGraph graph = StageGraph::chain(2);
  graph.freeze({0});
  const Schedule schedule = Schedule::parse("0F0 . . 0B0\n. 1F0 1B0 .");
  const IssuedDag issued =
      issue(apply(strategy_of(schedule, Layout::of(schedule)), bare_source(graph)));
  const std::string svg = render_dag_svg(issued);
  CHECK(occurrences(svg, "class=\"node surplus\"") == 1);
  CHECK_THAT(svg, ContainsSubstring("0B0, does nothing, on ranks [0]"));
}

TEST_CASE("text cannot break out of the picture of a DAG", "[scheduler][render][dag]") {
  IssuedDag issued = two_by_two();
  issued.dag.streams.back() = "<script>&\"'";
  issued.dag.nodes.back().tie = 0;
  issued.dag.nodes.back().kind = DagKind::AllReduce;
  issued.dag.source.ties = {{.name = "a</text><b>&", .stages = {}}};
  const std::string svg = render_dag_svg(issued);
  CHECK(!xml_fault(svg));
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(svg.find("<b>") == std::string::npos);
  CHECK_THAT(svg, ContainsSubstring("stream &lt;script&gt;&amp;"));
}

TEST_CASE("long names of streams do not leave their place", "[scheduler][render][dag]") {
  const std::string name(200, 'x');
  const std::string svg = render_dag_svg(two_by_two(name));
  CHECK(occurrences(svg, ">" + name + "<") == 0);
  CHECK_THAT(svg, ContainsSubstring("xxx...</text>") && ContainsSubstring("stream " + name));
}

TEST_CASE("a DAG with too many nodes is refused with a way out", "[scheduler][render][dag]") {
  const IssuedDag issued =
      issued_by("split {} dim=MB n=200\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n", 2);
  REQUIRE(issued.dag.size() > kMaxDrawnNodes);
  CHECK_THAT(refusal([&] { (void)render_dag_svg(issued); }, Errc::ScheduleParameter),
             ContainsSubstring("at most 1000 nodes") &&
                 ContainsSubstring(fmt::format("has {}", issued.dag.size())) &&
                 ContainsSubstring("fewer microbatches"));
}

}  // namespace
}  // namespace stagecraft
