#include "stagecraft/tools/dag/dag_text.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/table.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kPage = 100;   // columns
constexpr std::size_t kColumn = 14;  // where the nodes of a line begin, unless a name is longer
constexpr std::size_t kWidest = 32;  // of that column

/// Returns the column that leaves room for the names of all kinds and streams.
std::size_t column_for(const TrainingDag& dag) {
  std::size_t column = kColumn;
  for (const DagNode& node : dag.nodes) {
    const std::string& stream = dag.streams[static_cast<std::size_t>(node.stream)];
    column = std::max({column, to_string(node.kind).size() + 2, stream.size() + 2});
  }
  return std::min(column, kWidest);
}

/// Returns "2 stages, 2 microbatches: 26 nodes, 30 edges", and a line of nodes by kind.
std::string counts_of(const TrainingDag& dag, std::size_t column) {
  const auto data = std::ranges::count(dag.edges, true, &DagEdge::data);
  std::string text = fmt::format("{}, {}: {}, {}, {} of order\n",
                                 count_text(dag.source.graph.size(), "stage"),
                                 count_text(dag.microbatches, "microbatch"),
                                 count_text(dag.size(), "node"),
                                 count_text(data, "edge of data"),
                                 std::ssize(dag.edges) - data);
  for (int k = 0; k <= static_cast<int>(DagKind::Vote); ++k) {
    const auto kind = static_cast<DagKind>(k);
    if (const std::size_t count = dag.count(kind); count > 0) {
      text += fmt::format("  {:<{}}{}\n", to_string(kind), column, count);
    }
  }
  return text;
}

/// Returns a heading and the names of the nodes after it, in lines of a page.
std::string line_of(const TrainingDag& dag,
                    std::string_view heading,
                    const std::vector<int>& nodes,
                    std::size_t column) {
  const std::string indent(column + 2, ' ');
  std::string text = fmt::format("  {:<{}}", heading, column);
  if (heading.size() >= column) {
    text += '\n' + indent;
  }
  std::size_t used = indent.size();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string name = to_string(dag, nodes[i]) + (i + 1 < nodes.size() ? "," : "");
    if (i > 0 && used + 1 + name.size() > kPage) {
      text += '\n' + indent;
      used = indent.size();
    } else if (i > 0) {
      text += ' ';
      ++used;
    }
    text += name;
    used += name.size();
  }
  return text + '\n';
}

/// Returns the time of the step, and a table of what each rank list does in it.
std::string times_text(const IssuedDag& issued, const DagTimeline& times) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t place = 0; place < issued.lists.size(); ++place) {
    const DagTimeline::List& list = times.lists[place];
    const auto share = [](double part, double whole) {
      return whole > 0.0 ? fmt::format("{:.0f} %", 100.0 * part / whole) : std::string("-");
    };
    rows.push_back({place_text(issued.dag, static_cast<int>(place)),
                    number_text(list.computing),
                    share(list.computing, times.makespan),
                    number_text(list.communicating),
                    share(list.hidden, list.communicating)});
  }
  return fmt::format(
      "\ntime of a step: {}\n{}",
      number_text(times.makespan),
      table_text({"ranks", "computing", "of the step", "communicating", "under tasks"}, rows));
}

}  // namespace

std::string dag_text(const IssuedDag& issued, const DagTimeline* times) {
  const TrainingDag& dag = issued.dag;
  const std::size_t column = column_for(dag);
  std::string text = counts_of(dag, column);
  for (std::size_t place = 0; place < issued.lists.size(); ++place) {
    text += fmt::format("\nranks {}\n", place_text(dag, static_cast<int>(place)));
    const StreamOrder& order = issued.streams[place];
    for (std::size_t stream = 0; stream < order.streams.size(); ++stream) {
      if (!order.streams[stream].empty()) {
        text += line_of(dag, dag.streams[stream], order.streams[stream], column);
      }
    }
    text += line_of(dag, "issues", issued.lists[place], column);
  }
  if (times != nullptr) {
    text += times_text(issued, *times);
  }
  return text;
}

}  // namespace stagecraft::tools
