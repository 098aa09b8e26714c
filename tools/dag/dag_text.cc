#include "stagecraft/tools/dag/dag_text.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

constexpr std::size_t kPage = 100;   // columns
constexpr std::size_t kColumn = 14;  // where the nodes of a line begin

/// Returns "2 stages, 2 microbatches: 26 nodes, 30 edges", and a line of nodes by kind.
std::string counts_of(const TrainingDag& dag) {
  const auto data = std::ranges::count(dag.edges, true, &DagEdge::data);
  std::string text = fmt::format(
      "{} stages, {} microbatches: {} nodes, {} edges of data, {} of "
      "order\n",
      dag.source.graph.size(),
      dag.microbatches,
      dag.size(),
      data,
      std::ssize(dag.edges) - data);
  for (int k = 0; k <= static_cast<int>(DagKind::Vote); ++k) {
    const auto kind = static_cast<DagKind>(k);
    if (const std::size_t count = dag.count(kind); count > 0) {
      text += fmt::format("  {:<{}}{}\n", to_string(kind), kColumn, count);
    }
  }
  return text;
}

/// Returns a heading and the names of the nodes after it, in lines of a page.
std::string line_of(const TrainingDag& dag,
                    std::string_view heading,
                    const std::vector<int>& nodes) {
  std::string text = fmt::format("  {:<{}}", heading, kColumn);
  std::size_t used = kColumn + 2;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string name = to_string(dag, nodes[i]) + (i + 1 < nodes.size() ? "," : "");
    if (i > 0 && used + 1 + name.size() > kPage) {
      text += fmt::format("\n{:{}}", "", kColumn + 2);
      used = kColumn + 2;
    } else if (i > 0) {
      text += ' ';
      ++used;
    }
    text += name;
    used += name.size();
  }
  return text + '\n';
}

}  // namespace

std::string dag_text(const IssuedDag& issued) {
  const TrainingDag& dag = issued.dag;
  std::string text = counts_of(dag);
  for (std::size_t place = 0; place < issued.lists.size(); ++place) {
    text += fmt::format("\nranks {}\n", place_text(dag, static_cast<int>(place)));
    const StreamOrder& order = issued.streams[place];
    for (std::size_t stream = 0; stream < order.streams.size(); ++stream) {
      if (!order.streams[stream].empty()) {
        text += line_of(dag, dag.streams[stream], order.streams[stream]);
      }
    }
    text += line_of(dag, "issues", issued.lists[place]);
  }
  return text;
}

}  // namespace stagecraft::tools
