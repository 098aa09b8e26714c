#include "stagecraft/scheduler/render/html/dag_page.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/scheduler/render/dag/dag_svg.h"
#include "stagecraft/scheduler/render/html/html_assets.h"
#include "stagecraft/scheduler/render/html/json_text.h"

namespace stagecraft {
namespace {

using drawing::json_list;
using drawing::json_text;

/// Returns the places of the nodes in the lists that issue them, from 1.
std::vector<std::size_t> turns_of(const IssuedDag& issued) {
  std::vector<std::size_t> turns(issued.dag.nodes.size());
  for (const std::vector<int>& list : issued.lists) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      turns[static_cast<std::size_t>(list[i])] = i + 1;
    }
  }
  return turns;
}

/// A number of -1 stands for one that the node does not have.
std::string nodes_json(const IssuedDag& issued) {
  const TrainingDag& dag = issued.dag;
  const std::vector<std::size_t> turns = turns_of(issued);
  std::size_t number = 0;
  return json_list(dag.nodes, [&](const DagNode& node) {
    const std::size_t n = number++;
    const auto place = static_cast<std::size_t>(node.place);
    return fmt::format(
        R"({{"name":{},"kind":{},"stage":{},"microbatch":{},"chunk":{},"ranks":{},"stream":{},"turn":{},"of":{},"idle":{}}})",
        json_text(to_string(dag, static_cast<int>(n))),
        json_text(to_string(node.kind)),
        node.stage.value,
        node.microbatch.value == kNone ? kNone : dag.microbatch_in_schedule(node),
        node.chunk,
        json_text(place_text(dag, node.place)),
        json_text(dag.streams[static_cast<std::size_t>(node.stream)]),
        turns[n],
        issued.lists[place].size(),
        computes(node.kind) && dag.is_surplus(node));
  });
}

/// Returns [from, to, kind] for each edge; transfers are edges too.
std::string dag_edges_json(const TrainingDag& dag) {
  std::string edges = json_list(dag.edges, [](const DagEdge& edge) {
    return fmt::format(R"([{},{},"{}"])", edge.from, edge.to, edge.data ? "data" : "order");
  });
  for (int n = 0; n < dag.size(); ++n) {
    if (dag.node(n).kind == DagKind::Send) {
      edges.pop_back();
      edges +=
          fmt::format(R"({}[{},{},"transfer"]])", edges.size() > 1 ? "," : "", n, dag.node(n).peer);
    }
  }
  return edges;
}

}  // namespace

std::string render_dag_page(const IssuedDag& issued, std::string_view title) {
  const TrainingDag& dag = issued.dag;
  return drawing::kDagPage.document(
      title,
      fmt::format("{{\"title\":{},\"stages\":{},\"microbatches\":{},\n\"nodes\":{},\n\"edges\":{},"
                  "\n\"operators\":{},\n\"svg\":{}}}",
                  json_text(title),
                  dag.source.graph.size(),
                  dag.microbatches,
                  nodes_json(issued),
                  dag_edges_json(dag),
                  json_list(dag.source.chunks,
                            [](const std::vector<DagChunk>& chunks) {
                              return json_list(chunks, [](const DagChunk& chunk) {
                                return json_list(chunk.operators, json_text);
                              });
                            }),
                  json_text(render_dag_svg(issued))));
}

}  // namespace stagecraft
