#include "stagecraft/scheduler/model/layout.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

Layout Layout::of(const Schedule& schedule) {
  return {schedule, schedule.stage_graph()};
}

Layout::Layout(const Schedule& schedule, const StageGraph& graph)
    : replicas_(graph.replicas()), placement_(Placement::of(schedule, graph.size())) {
  number_copies(graph);
  number_ranks(schedule);
}

void Layout::number_copies(const StageGraph& graph) {
  const auto stages = static_cast<std::size_t>(graph.size());
  model_stage_.resize(stages);
  replica_.resize(stages);
  std::map<int, int> next_copy(graph.replica_pairs().begin(), graph.replica_pairs().end());
  int models = 0;
  for (int s = 0; s < graph.size(); ++s) {
    if (graph.replica_of(StageId(s)) != 0) {
      continue;  // reached from its first copy
    }
    int copy = s;
    for (int replica = 0; replica < replicas_; ++replica) {
      model_stage_[static_cast<std::size_t>(copy)] = StageId(models);
      replica_[static_cast<std::size_t>(copy)] = replica;
      copies_.emplace_back(copy);
      const auto next = next_copy.find(copy);
      if (replica + 1 < replicas_ && next == next_copy.end()) {
        throw Error(Errc::ScheduleParameter,
                    fmt::format("stage {} has no copy in replica {}: pair it with one in @replicas",
                                copy,
                                replica + 1));
      }
      copy = next == next_copy.end() ? copy : next->second;
    }
    ++models;
  }
  if (models * replicas_ != graph.size()) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("the replica pairs make {} copies of {} stages out of {}: name every "
                            "stage once, e.g. @replicas 0=4,1=5",
                            replicas_,
                            models,
                            graph.size()));
  }
}

/// Keeps LA-2.
void Layout::number_ranks(const Schedule& schedule) {
  for (const Schedule::Row& row : schedule.rows()) {
    std::vector<Rank>& ranks = ranks_of_row_.emplace_back();
    if (!std::ranges::all_of(row, &Cell::idle)) {
      ranks.emplace_back(row_of_rank_.size());
      row_of_rank_.push_back(rows() - 1);
    }
  }
}

StageId Layout::stage(StageId model_stage, int replica) const {
  return copies_[model_stage.index() * static_cast<std::size_t>(replicas_) +
                 static_cast<std::size_t>(replica)];
}

StageGraph Layout::expand(const StageGraph& model) const {
  if (replicas_ == 1) {
    return model;
  }
  if (model.size() != model_stages()) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("the schedule runs {} replicas of {} stages, but the model has {}: cut "
                            "the model into {}, or make the schedule for {}",
                            replicas_,
                            model_stages(),
                            model.size(),
                            model_stages(),
                            model.size()));
  }
  std::vector<StageGraph::Edge> edges, pairs;
  for (int replica = 0; replica < replicas_; ++replica) {
    for (const auto& [from, to] : model.edges()) {
      edges.emplace_back(stage(StageId(from), replica).value, stage(StageId(to), replica).value);
    }
  }
  StageGraph graph = StageGraph::from_edges(stages(), edges);
  for (int m = 0; m < model.size(); ++m) {
    for (int replica = 0; replica < replicas_; ++replica) {
      const StageId s = stage(StageId(m), replica);
      graph.describe_as(s, model, StageId(m));
      if (replica > 0) {
        pairs.emplace_back(stage(StageId(m), replica - 1).value, s.value);
      }
    }
  }
  graph.set_replica_pairs(pairs);
  for (const TiedParameter& tied : model.tied()) {
    for (int replica = 0; replica < replicas_; ++replica) {
      TiedParameter copy = tied;
      for (StageId& s : copy.stages) {
        s = stage(s, replica);
      }
      graph.add_tied(std::move(copy));
    }
  }
  return graph;
}

Schedule Layout::with_step_microbatches(const Schedule& schedule) const {
  if (replicas_ == 1) {
    return schedule;
  }
  const StageGraph graph = schedule.stage_graph();
  std::vector<Schedule::Row> rows;
  for (const Schedule::Row& row : schedule.rows()) {
    Schedule::Row& renamed = rows.emplace_back();
    for (const Cell& cell : row) {
      std::vector<Task> tasks(cell.tasks().begin(), cell.tasks().end());
      for (Task& task : tasks) {
        if (task.kind != CellKind::Update) {
          const int share = graph.microbatches_of(task.stage, schedule.microbatches());
          task.microbatch = Microbatch(task.microbatch.value + replica(task.stage) * share);
        }
      }
      renamed.push_back(cell.is_group() ? Cell(std::move(tasks))
                        : cell.idle()   ? Cell()
                                        : Cell(tasks.front()));
    }
  }
  return {schedule.form(), std::move(rows), schedule.headers()};
}

std::span<const Rank> Layout::ranks_of(StageId s) const {
  const std::optional<int> row = placement_.row(s);
  return row ? ranks_of(*row) : std::span<const Rank>();
}

}  // namespace stagecraft
