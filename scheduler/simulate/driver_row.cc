#include "stagecraft/scheduler/simulate/driver_row.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/simulate/to_array.h"

namespace stagecraft {
namespace {

/// Returns the graph by which the columns are found. A divided stage waits there for a gradient if
/// any of its parts does.
StageGraph graph_of_columns(const StageGraph& graph, const StageParts& parts) {
  StageGraph whole = whole_stages(graph, parts);
  for (int p = 0; p < graph.size(); ++p) {
    if (graph.needs_input_grad(StageId(p))) {
      whole.set_needs_input_grad(parts[StageId(p).index()].stage, true);
    }
  }
  return whole;
}

class Divider {
 public:
  Divider(const Schedule& schedule,
          const Layout& layout,
          const StageGraph& graph,
          const StageParts& parts)
      : array_(to_array(schedule.to_list(), layout.expand(graph_of_columns(graph, parts)))),
        layout_(layout),
        graph_(graph),
        parts_(parts),
        rows_(schedule.rows().size() + 1) {}

  Schedule run() {
    for (std::size_t column = 0; column < array_.columns(); ++column) {
      for (std::size_t row = 0; row < array_.rows().size(); ++row) {
        if (column < array_.rows()[row].size()) {
          divide(array_.rows()[row][column], rows_[row]);
        }
      }
    }
    Schedule::Headers described = headers();
    return {Schedule::Form::List, std::move(rows_), std::move(described)};
  }

 private:
  /// Returns the number of a part in the schedule of parts: copy by copy.
  [[nodiscard]] StageId number(std::size_t part, int replica) const {
    return StageId(static_cast<int>(part) + replica * graph_.size());
  }

  [[nodiscard]] std::vector<std::size_t> parts_of(StageId scheduled) const {
    std::vector<std::size_t> found;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (parts_[p].stage == layout_.model_stage(scheduled)) {
        found.push_back(p);
      }
    }
    return found;
  }

  void divide(const Cell& cell, Schedule::Row& row) {
    const bool whole = std::ranges::all_of(
        cell.tasks(), [&](const Task& task) { return parts_of(task.stage).size() == 1; });
    if (cell.is_group() && whole) {
      std::vector<Task> group(cell.tasks().begin(), cell.tasks().end());
      for (Task& task : group) {
        task.stage = number(parts_of(task.stage).front(), layout_.replica(task.stage));
      }
      row.emplace_back(std::move(group));
      return;
    }
    for (const Task& task : cell.tasks()) {
      divide(task, row);
    }
  }

  void divide(const Task& task, Schedule::Row& row) {
    const bool backward = task.kind == CellKind::Backward || task.kind == CellKind::BackwardInput ||
                          task.kind == CellKind::BackwardWeight;
    std::vector<std::size_t> parts = parts_of(task.stage);
    if (backward) {
      std::ranges::reverse(parts);
    }
    for (const std::size_t p : parts) {
      Task part = task;
      part.stage = number(p, layout_.replica(task.stage));
      if (parts.size() > 1 && backward && !graph_.has_backward(StageId(static_cast<int>(p)))) {
        continue;
      }
      if (!parts_[p].on_driver) {
        row.emplace_back(part);
      } else if (task.kind != CellKind::BackwardWeight && task.kind != CellKind::Update) {
        part.kind = backward ? CellKind::Backward : task.kind;  // code has no weights
        rows_.back().emplace_back(part);
      }
    }
  }

  [[nodiscard]] StageGraph graph() const {
    const int replicas = layout_.replicas();
    std::vector<StageGraph::Edge> edges, pairs;
    for (int q = 0; q < replicas; ++q) {
      for (const auto& [from, to] : graph_.edges()) {
        edges.emplace_back(from + q * graph_.size(), to + q * graph_.size());
      }
      for (int p = 0; q + 1 < replicas && p < graph_.size(); ++p) {
        pairs.emplace_back(p + q * graph_.size(), p + (q + 1) * graph_.size());
      }
    }
    StageGraph all = StageGraph::from_edges(graph_.size() * replicas, edges);
    for (int s = 0; s < all.size(); ++s) {
      all.describe_as(StageId(s), graph_, StageId(s % graph_.size()));
    }
    all.set_replica_pairs(pairs);
    return all;
  }

  [[nodiscard]] Schedule::Headers headers() const {
    Schedule::Headers headers = array_.headers();
    headers.rows = static_cast<int>(rows_.size());
    headers.graph = graph();
    headers.stages = headers.graph->size();
    headers.has_driver_row = true;
    if (!headers.places.empty()) {
      headers.places.resize(rows_.size() - 1);
      headers.places.push_back({Rank(layout_.ranks())});
    }
    return headers;
  }

  const Schedule array_;
  const Layout& layout_;
  const StageGraph& graph_;
  const StageParts& parts_;
  std::vector<Schedule::Row> rows_;
};

}  // namespace

Schedule with_driver_row(const Schedule& schedule,
                         const Layout& layout,
                         const StageGraph& graph,
                         const StageParts& parts) {
  return Divider(schedule, layout, graph, parts).run();
}

}  // namespace stagecraft
