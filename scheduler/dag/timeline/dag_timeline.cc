#include "stagecraft/scheduler/dag/timeline/dag_timeline.h"

#include <algorithm>
#include <cstddef>

namespace stagecraft {
namespace {

class NodeTimes {
 public:
  NodeTimes(const TrainingDag& dag, const DagCosts& costs) : dag_(dag), costs_(costs) {}

  [[nodiscard]] double of(int number) const {
    const DagNode& node = dag_.node(number);
    if (computes(node.kind)) {
      const auto chunks = static_cast<double>(dag_.source.chunks[node.stage.index()].size());
      Task task = node.task();
      task.microbatch = Microbatch(dag_.microbatch_in_schedule(node));
      return costs_.costs.stages.duration(Cell(task), dag_.source.graph) / chunks;
    }
    if (node.kind == DagKind::Send) {
      return transfer(node, dag_.node(node.peer));
    }
    return node.kind == DagKind::AllToAll ? costs_.exchange
           : is_collective(node.kind)     ? collective(node)
                                          : 0.0;
  }

 private:
  [[nodiscard]] const std::vector<Rank>& ranks_of(const DagNode& node) const {
    return dag_.places[static_cast<std::size_t>(node.place)];
  }

  [[nodiscard]] double transfer(const DagNode& from, const DagNode& to) const {
    const auto& [first, second] = std::minmax(from.stage.value, to.stage.value);
    return costs_.costs.links.transfer(
        {first, second}, ranks_of(from).front().value, ranks_of(to).front().value);
  }

  [[nodiscard]] double collective(const DagNode& node) const {
    const auto ranks = static_cast<double>(ranks_of(node).size());
    const double bytes =
        node.bucket == kNone
            ? 0.0
            : static_cast<double>(dag_.buckets[static_cast<std::size_t>(node.bucket)].bytes);
    const double passes = node.kind == DagKind::AllReduce ? 2.0 : 1.0;
    return costs_.costs.links.of_sums().time_of(passes * (ranks - 1) / ranks * bytes);
  }

  const TrainingDag& dag_;
  const DagCosts& costs_;
};

/// Returns, by node, those that wait for it.
std::vector<std::vector<int>> successors(const TrainingDag& dag) {
  std::vector<std::vector<int>> after(static_cast<std::size_t>(dag.size()));
  for (const DagEdge& edge : dag.edges) {
    after[static_cast<std::size_t>(edge.from)].push_back(edge.to);
  }
  for (int n = 0; n < dag.size(); ++n) {
    if (dag.node(n).kind == DagKind::Send) {
      after[static_cast<std::size_t>(n)].push_back(dag.node(n).peer);
    }
  }
  return after;
}

/// Returns the spans in which a list computes, ascending. They do not overlap, since a stream does
/// one node after the other.
std::vector<DagTimeline::Span> computing_spans(const TrainingDag& dag,
                                               const std::vector<int>& list,
                                               const std::vector<DagTimeline::Span>& nodes) {
  std::vector<DagTimeline::Span> spans;
  for (const int n : list) {
    if (computes(dag.node(n).kind)) {
      spans.push_back(nodes[static_cast<std::size_t>(n)]);
    }
  }
  std::ranges::sort(spans, {}, &DagTimeline::Span::start);
  return spans;
}

/// Returns how much of a span lies in others, which are ascending.
double overlap(const DagTimeline::Span& span, const std::vector<DagTimeline::Span>& others) {
  double sum = 0;
  auto other = std::ranges::upper_bound(others, span.start, {}, &DagTimeline::Span::end);
  for (; other != others.end() && other->start < span.end; ++other) {
    sum += std::min(span.end, other->end) - std::max(span.start, other->start);
  }
  return sum;
}

}  // namespace

DagTimeline timeline_of(const IssuedDag& issued, const DagCosts& costs) {
  const TrainingDag& dag = issued.dag;
  const NodeTimes times(dag, costs);
  const std::vector<std::vector<int>> after = successors(dag);
  std::vector<int> missing(after.size());  // predecessors that have not ended
  for (const std::vector<int>& of_node : after) {
    for (const int n : of_node) {
      ++missing[static_cast<std::size_t>(n)];
    }
  }
  DagTimeline timeline{.nodes = std::vector<DagTimeline::Span>(after.size()), .lists = {}};
  std::vector<int> ready;
  for (int n = 0; n < dag.size(); ++n) {
    if (missing[static_cast<std::size_t>(n)] == 0) {
      ready.push_back(n);
    }
  }
  while (!ready.empty()) {
    const int n = ready.back();
    ready.pop_back();
    DagTimeline::Span& span = timeline.nodes[static_cast<std::size_t>(n)];
    span.end = span.start + times.of(n);
    timeline.makespan = std::max(timeline.makespan, span.end);
    for (const int next : after[static_cast<std::size_t>(n)]) {
      double& start = timeline.nodes[static_cast<std::size_t>(next)].start;
      start = std::max(start, span.end);
      if (--missing[static_cast<std::size_t>(next)] == 0) {
        ready.push_back(next);
      }
    }
  }
  for (const std::vector<int>& nodes : issued.lists) {
    DagTimeline::List& list = timeline.lists.emplace_back();
    const std::vector<DagTimeline::Span> tasks = computing_spans(dag, nodes, timeline.nodes);
    for (const int n : nodes) {
      const DagTimeline::Span& span = timeline.nodes[static_cast<std::size_t>(n)];
      if (computes(dag.node(n).kind)) {
        list.computing += span.end - span.start;
      } else {
        list.communicating += span.end - span.start;
        list.hidden += overlap(span, tasks);
      }
    }
  }
  return timeline;
}

}  // namespace stagecraft
