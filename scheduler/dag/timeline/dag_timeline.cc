#include "stagecraft/scheduler/dag/timeline/dag_timeline.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "stagecraft/scheduler/dag/timeline/chunk_shares.h"

namespace stagecraft {
namespace {

class NodeTimes {
 public:
  NodeTimes(const TrainingDag& dag, const DagCosts& costs)
      : dag_(dag), costs_(costs), shares_(dag.source, costs.costs) {}

  /// `ranks`: those that take part, of a collective.
  [[nodiscard]] double of(const DagNode& node, std::size_t ranks) const {
    if (computes(node.kind)) {
      Task task = node.task();
      task.microbatch = Microbatch(dag_.microbatch_in_schedule(node));
      return costs_.costs.stages.duration(Cell(task), dag_.source.graph) *
             shares_.of(node.stage, node.chunk, task.kind);
    }
    if (node.kind == DagKind::Send) {
      return transfer(node, dag_.node(node.peer));
    }
    return node.kind == DagKind::AllToAll ? costs_.exchange
           : is_collective(node.kind)     ? collective(node, ranks)
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

  /// `ranks`: of all its nodes. The copies of a part of divided weights sum by themselves.
  [[nodiscard]] double collective(const DagNode& node, std::size_t ranks) const {
    if (node.bucket == kNone) {
      return costs_.costs.links.of_sums().time_of(0);
    }
    const DagBucket& bucket = dag_.buckets[static_cast<std::size_t>(node.bucket)];
    const auto members = static_cast<double>(ranks) / bucket.parts;
    const double bytes = static_cast<double>(bucket.bytes) / bucket.parts;
    const double passes = node.kind == DagKind::AllReduce ? 2.0 : 1.0;
    return costs_.costs.links.of_sums().time_of(passes * (members - 1) / members * bytes);
  }

  const TrainingDag& dag_;
  const DagCosts& costs_;
  const ChunkShares shares_;
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

/// Meetings knows which nodes are one collective.
class Meetings {
 public:
  explicit Meetings(const TrainingDag& dag) : of_node_(static_cast<std::size_t>(dag.size())) {
    std::map<Meeting, std::size_t> known;
    for (int n = 0; n < dag.size(); ++n) {
      const auto [entry, added] = known.try_emplace(meeting_of(dag, n), nodes_.size());
      if (added) {
        nodes_.emplace_back();
      }
      nodes_[entry->second].push_back(n);
      of_node_[static_cast<std::size_t>(n)] = entry->second;
    }
  }

  [[nodiscard]] std::size_t count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t of(int node) const { return of_node_[static_cast<std::size_t>(node)]; }
  [[nodiscard]] const std::vector<int>& nodes(std::size_t meeting) const { return nodes_[meeting]; }

 private:
  std::vector<std::size_t> of_node_;
  std::vector<std::vector<int>> nodes_;  // by meeting; a node that meets none is alone
};

/// Returns the spans of all nodes. A meeting starts when all that its nodes wait for has ended.
std::vector<DagTimeline::Span> spans_of(const TrainingDag& dag, const NodeTimes& times) {
  const Meetings meetings(dag);
  const std::vector<std::vector<int>> after = successors(dag);
  std::vector<int> missing(meetings.count());  // nodes before it that have not ended
  for (const std::vector<int>& of_node : after) {
    for (const int n : of_node) {
      ++missing[meetings.of(n)];
    }
  }
  std::vector<double> start(meetings.count());
  std::vector<std::size_t> ready;
  for (std::size_t m = 0; m < meetings.count(); ++m) {
    if (missing[m] == 0) {
      ready.push_back(m);
    }
  }
  std::vector<DagTimeline::Span> spans(after.size());
  while (!ready.empty()) {
    const std::size_t meeting = ready.back();
    ready.pop_back();
    std::size_t ranks = 0;
    for (const int n : meetings.nodes(meeting)) {
      ranks += dag.places[static_cast<std::size_t>(dag.node(n).place)].size();
    }
    for (const int n : meetings.nodes(meeting)) {
      const double end = start[meeting] + times.of(dag.node(n), ranks);
      spans[static_cast<std::size_t>(n)] = {start[meeting], end};
      for (const int next : after[static_cast<std::size_t>(n)]) {
        const std::size_t then = meetings.of(next);
        start[then] = std::max(start[then], end);
        if (--missing[then] == 0) {
          ready.push_back(then);
        }
      }
    }
  }
  return spans;
}

}  // namespace

DagTimeline timeline_of(const IssuedDag& issued, const DagCosts& costs) {
  const TrainingDag& dag = issued.dag;
  DagTimeline timeline{.nodes = spans_of(dag, NodeTimes(dag, costs)), .lists = {}};
  for (const DagTimeline::Span& span : timeline.nodes) {
    timeline.makespan = std::max(timeline.makespan, span.end);
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
