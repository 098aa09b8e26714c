#include "stagecraft/scheduler/dag/issue/schedule_of.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

/// Returns the computing nodes that end a task, in the order of the place's compute stream.
std::vector<int> last_nodes(const IssuedDag& issued, std::size_t place) {
  const std::vector<int>& stream = issued.streams[place].streams[kComputeStream];
  std::map<Task, int> last;
  for (const int n : stream) {
    if (computes(issued.dag.node(n).kind)) {
      last[issued.dag.node(n).task()] = n;
    }
  }
  std::vector<int> nodes;
  std::ranges::copy_if(stream, std::back_inserter(nodes), [&](int n) {
    const DagNode& node = issued.dag.node(n);
    return computes(node.kind) && last.at(node.task()) == n;
  });
  return nodes;
}

/// Returns a row. Requires: the members of a group are adjacent.
Schedule::Row row_of(const TrainingDag& dag, const std::vector<int>& nodes) {
  Schedule::Row row;
  for (std::size_t i = 0; i < nodes.size();) {
    const int group = dag.node(nodes[i]).overlap;
    std::vector<Task> tasks{dag.node(nodes[i]).task()};
    for (++i; group != kNone && i < nodes.size() && dag.node(nodes[i]).overlap == group; ++i) {
      tasks.push_back(dag.node(nodes[i]).task());
    }
    row.push_back(tasks.size() == 1 ? Cell(tasks.front()) : Cell(std::move(tasks)));
  }
  return row;
}

}  // namespace

Schedule schedule_of(const IssuedDag& issued) {
  const TrainingDag& dag = issued.dag;
  std::vector<std::size_t> order(dag.places.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t p) { return dag.places[p].front(); });
  Schedule::Headers headers{.rows = static_cast<int>(order.size()),
                            .stages = dag.source.graph.size(),
                            .microbatches = dag.microbatches,
                            .graph = dag.source.graph};
  std::vector<Schedule::Row> rows;
  bool plain = true;  // row r is rank r
  for (const std::size_t place : order) {
    plain = plain && dag.places[place] == std::vector<Rank>{Rank(rows.size())};
    headers.places.push_back(dag.places[place]);
    rows.push_back(row_of(dag, last_nodes(issued, place)));
  }
  if (plain) {
    headers.places.clear();
  }
  return {Schedule::Form::List, std::move(rows), std::move(headers)};
}

}  // namespace stagecraft
