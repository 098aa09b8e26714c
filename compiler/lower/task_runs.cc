#include "stagecraft/compiler/lower/task_runs.h"

#include <algorithm>
#include <map>

#include "stagecraft/base/check.h"

namespace stagecraft {

TaskRuns::TaskRuns(const EmitInput& input, const std::vector<int>& nodes, int units)
    : dag_(input.dag),
      edges_(input.edges),
      nodes_(nodes),
      units_(units),
      positions_(input.positions) {
  find_runs();
  find_loose_groups();
}

void TaskRuns::find_runs() {
  run_of_.assign(nodes_.size(), -1);
  std::size_t last = nodes_.size();
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!computes(node_at(i).kind)) {
      continue;
    }
    if (last < nodes_.size() && continues(last, i)) {
      run_of_[i] = run_of_[last];
      Run& run = runs_.back();
      run.nodes.push_back(i);
      run.chunks.first = std::min(run.chunks.first, node_at(i).chunk);
      ++run.chunks.count;
    } else {
      run_of_[i] = static_cast<int>(runs_.size());
      runs_.push_back({.nodes = {i}, .chunks = {node_at(i).chunk, 1}});
    }
    last = i;
  }
}

void TaskRuns::find_loose_groups() {
  std::map<int, std::set<Task>> tasks;  // of a group that may be loose
  std::set<int> strict;
  int last_run = -1, last_group = kNone;
  bool collective = false;  // since the last task
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const DagNode& node = node_at(i);
    collective = collective || is_collective(node.kind);
    if (!computes(node.kind)) {
      continue;
    }
    if (node.overlap != kNone && run_of_[i] != last_run) {
      const bool goes_on = node.overlap == last_group;
      if (!tasks[node.overlap].insert(node.task()).second || (goes_on && collective)) {
        strict.insert(node.overlap);
      }
    }
    last_run = run_of_[i];
    last_group = node.overlap;
    collective = false;
  }
  for (const auto& [group, of_group] : tasks) {
    if (units_ == 1 && !strict.contains(group)) {
      loose_.insert(group);
    }
  }
}

bool TaskRuns::continues(std::size_t a, std::size_t b) const {
  const DagNode& before = node_at(a);
  const DagNode& next = node_at(b);
  const int step = next.kind == DagKind::Forward ? 1 : -1;
  if (before.kind != next.kind || before.stage != next.stage ||
      before.microbatch != next.microbatch || next.chunk != before.chunk + step) {
    return false;
  }
  const auto needs_collective = [&](int e) { return is_collective(dag_.node(edge(e).from).kind); };
  const auto completes_collective = [&](int e) {
    const int to = edge(e).to;
    return is_collective(dag_.node(to).kind) &&
           std::ranges::none_of(edges_.incoming(to), [&](int other) {
             const int from = edge(other).from;
             return dag_.node(from).place == dag_.node(to).place && position_of(from) > a;
           });
  };
  return std::ranges::none_of(edges_.incoming(nodes_[b]), needs_collective) &&
         std::ranges::none_of(edges_.outgoing(nodes_[a]), completes_collective);
}

bool TaskRuns::is_in_block(std::size_t position) const {
  const bool sends = node_at(position).kind == DagKind::Send;
  const DagEdge& moved = edge(data_edge(nodes_[position]));
  const int served = sends ? moved.from : moved.to;
  const int group = dag_.node(served).overlap;
  const bool loose = is_loose(group);
  if (!loose && units_ == 1) {
    return false;
  }
  const std::size_t at = position_of(served);
  for (std::size_t j = at + 1; sends && j < position; ++j) {
    const bool same = loose ? node_at(j).overlap == group : run_of_[j] == run_of_[at];
    if (computes(node_at(j).kind) && !same) {
      return false;
    }
  }
  return true;
}

int TaskRuns::data_edge(int transfer) const {
  const bool sends = dag_.node(transfer).kind == DagKind::Send;
  const auto edges = sends ? edges_.incoming(transfer) : edges_.outgoing(transfer);
  const auto found = std::ranges::find_if(edges, [&](int e) { return edge(e).data; });
  SC_CHECK(found != edges.end(), "a transfer has a tensor");
  return *found;
}

}  // namespace stagecraft
