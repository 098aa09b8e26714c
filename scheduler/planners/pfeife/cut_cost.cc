#include "stagecraft/scheduler/planners/pfeife/cut_cost.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr double kNothing = -1;

bool lists_updates(const Schedule& schedule) {
  return std::ranges::any_of(schedule.rows(), [](const Schedule::Row& row) {
    return std::ranges::any_of(row, [](const Cell& cell) {
      return !cell.idle() && cell.tasks().front().kind == CellKind::Update;
    });
  });
}

}  // namespace

CutCost::CutCost(const OperatorRow& row,
                 const LinkCosts& links,
                 Schedule schedule,
                 double memory,
                 CostDevice device,
                 double most_summed)
    : row_(&row),
      links_(links),
      schedule_(std::move(schedule)),
      memory_(memory),
      device_(std::move(device)),
      most_summed_(most_summed),
      layout_(Layout::of(schedule_)),
      placement_(Placement::of(schedule_, layout_.stages())),
      updates_listed_(lists_updates(schedule_)) {
  if (stages() > row.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the schedule has {} stages and the model {} operators; choose a "
                            "schedule of fewer stages",
                            stages(),
                            row.size()));
  }
  const auto pairs = static_cast<std::size_t>(stages()) * static_cast<std::size_t>(stages());
  bytes_.assign(pairs, kNothing);
  known_.assign(pairs, 0);
  for (int s = 0; s + 1 < stages(); ++s) {
    edges_.emplace_back(s, s + 1);
    known_[pair(s, s + 1)] = 1;
  }
  model_.input_release = 1 - device_.split_bytes;
  widen();
  count_tasks();
}

void CutCost::count_tasks() {
  bool split = false;
  for (const Schedule::Row& row : schedule_.rows()) {
    RowTasks& tasks = row_tasks_.emplace_back();
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (task.kind == CellKind::Update) {
          continue;
        }
        const int stage = layout_.model_stage(task.stage).value;
        const auto kind =
            static_cast<std::size_t>(task.kind) - static_cast<std::size_t>(CellKind::Forward);
        split = split || task.kind == CellKind::BackwardWeight;
        tasks.first = tasks.counts.empty() ? stage : tasks.first;
        tasks.last = task.kind == CellKind::Backward ? std::optional(stage) : std::nullopt;
        auto count = std::ranges::find(tasks.counts, stage, &RowTasks::Count::stage);
        if (count == tasks.counts.end()) {
          count = tasks.counts.insert(count, {.stage = stage});
        }
        ++count->tasks[kind];
      }
    }
  }
  for (RowTasks& tasks : row_tasks_) {
    tasks.last = split ? std::nullopt : tasks.last;
  }
}

double CutCost::bound(std::span<const int> cuts) const {
  const auto begin_of = [&](int stage) {
    return stage_begin(cuts, static_cast<std::size_t>(stage));
  };
  double bound = 0;
  for (const RowTasks& tasks : row_tasks_) {
    if (tasks.counts.empty()) {
      continue;
    }
    double time = row_->forward_before(begin_of(tasks.first));
    for (const auto& [stage, count] : tasks.counts) {
      const Durations each =
          durations_of(row_->times(begin_of(stage),
                                   stage_end(cuts, static_cast<std::size_t>(stage), row_->size())),
                       device_);
      const bool is_first = stage == 0;
      time += count[0] * each.forward + count[1] * each.backward +
              count[2] * (is_first ? 0 : each.backward_input) +
              count[3] * (is_first ? each.backward : each.backward_weight);
    }
    bound = std::max(bound, time + (tasks.last ? row_->backward_before(begin_of(*tasks.last)) : 0));
  }
  return bound;
}

/// Makes the graph of the stages. The first stage reads no other, as in stage_graph_of(). A later
/// stage without inputs still counts as having some, because `edges` are those of all cuts.
StageGraph CutCost::stages_with(const std::vector<StageGraph::Edge>& edges) const {
  StageGraph graph = StageGraph::from_edges(stages(), edges);
  graph.set_needs_input_grad(StageId(0), false);
  return layout_.expand(graph);
}

/// Rebuilds the step's graph for all known edges.
void CutCost::widen() {
  stage_graph_ = stages_with(edges_);
  step_.emplace(schedule_, stage_graph_);
  ways_ = ways_of(*step_);
}

std::vector<CutCost::Way> CutCost::ways_of(const StepGraph& graph) const {
  std::vector<Way> ways;
  for (const auto& [from, to] : graph.edges()) {
    const StageId producer(from);
    const StageId consumer(to);
    const int from_row = placement_.row(producer).value_or(0);
    const int to_row = placement_.row(consumer).value_or(0);
    ways.push_back(
        {.pair = pair(layout_.model_stage(producer).value, layout_.model_stage(consumer).value),
         .forward = links_.between(from_row, to_row),
         .backward = links_.between(to_row, from_row)});
  }
  return ways;
}

/// Finds the bytes that cross between the stages of this cut, and prepares the step's graph for it.
void CutCost::find_crossing(std::span<const int> cuts) {
  for (const std::size_t p : passing_) {
    bytes_[p] = kNothing;
  }
  passing_.clear();
  bool wider = false;
  row_->for_each_crossing(cuts, [&](int from, int to, double bytes) {
    const std::size_t p = pair(from, to);
    if (bytes_[p] < 0) {
      bytes_[p] = 0;
      passing_.push_back(p);
      if (known_[p] == 0) {
        known_[p] = 1;
        edges_.emplace_back(from, to);
        wider = true;
      }
    }
    bytes_[p] += bytes;
  });
  if (wider) {
    widen();
  }
}

void CutCost::set_weights(StepGraph& graph,
                          const std::vector<Way>& ways,
                          std::span<const int> cuts) const {
  graph.clear_updates();
  for (int s = 0; s < layout_.stages(); ++s) {
    const auto stage = static_cast<std::size_t>(layout_.model_stage(StageId(s)).value);
    const Durations each = durations_of(
        row_->times(stage_begin(cuts, stage), stage_end(cuts, stage, row_->size())), device_);
    graph.set_duration(StageId(s), CellKind::Forward, each.forward);
    graph.set_duration(StageId(s), CellKind::Backward, each.backward);
    const bool is_first = stage == 0;  // its inputs need no gradient: W does all
    graph.set_duration(StageId(s), CellKind::BackwardInput, is_first ? 0 : each.backward_input);
    graph.set_duration(
        StageId(s), CellKind::BackwardWeight, is_first ? each.backward : each.backward_weight);
    graph.set_duration(StageId(s), CellKind::Update, each.update);
    if (!updates_listed_) {
      graph.add_update(placement_.row(StageId(s)).value_or(0), each.update);
    }
  }
  for (std::size_t e = 0; e < ways.size(); ++e) {
    const double bytes = bytes_[ways[e].pair];
    if (bytes < 0) {
      graph.set_transfer(e, StepGraph::kNoTransfer, StepGraph::kNoTransfer);
    } else {
      graph.set_transfer(e, ways[e].forward.time_of(bytes), ways[e].backward.time_of(bytes));
    }
  }
}

double CutCost::step_time(std::span<const int> cuts) {
  find_crossing(cuts);
  set_weights(*step_, ways_, cuts);
  return step_->run();
}

std::vector<StepEvent> CutCost::critical_path(std::span<const int> cuts) {
  step_time(cuts);
  return step_->critical_path();
}

/// `trained`: bytes of gradients by stage of the model.
UpdateBytes CutCost::update_bytes(std::span<const int> cuts,
                                  const std::vector<double>& trained) const {
  UpdateBytes bytes(static_cast<int>(schedule_.rows().size()));
  const auto row_of = [&](int stage, int replica) {
    return placement_.row(layout_.stage(StageId(stage), replica)).value_or(0);
  };
  for (int stage = 0; layout_.replicas() > 1 && stage < stages(); ++stage) {
    std::set<int> rows;
    for (int replica = 0; replica < layout_.replicas(); ++replica) {
      rows.insert(row_of(stage, replica));
    }
    bytes.add_copies(std::vector(rows.begin(), rows.end()),
                     static_cast<int>(rows.size()),
                     std::min(trained[static_cast<std::size_t>(stage)], most_summed_));
  }
  std::map<std::vector<int>, double> shared;  // by stages
  row_->for_each_shared([&](std::span<const int> users, double gradient) {
    std::vector<int> sharing;
    for (const int op : users) {
      const auto stage = static_cast<int>(std::ranges::upper_bound(cuts, op) - cuts.begin());
      if (sharing.empty() || sharing.back() != stage) {
        sharing.push_back(stage);
      }
    }
    if (sharing.size() > 1) {
      shared[sharing] += gradient;
    }
  });
  for (const auto& [sharing, gradients] : shared) {
    for (int replica = 0; replica < layout_.replicas(); ++replica) {
      std::vector<int> rows;
      for (const int stage : sharing) {
        rows.push_back(row_of(stage, replica));
      }
      bytes.add_tie(rows, gradients);
    }
  }
  return bytes;
}

CutCost::Peak CutCost::peak(std::span<const int> cuts) {
  find_crossing(cuts);
  const auto stages_here = static_cast<std::size_t>(layout_.stages());
  std::vector<double> trained(static_cast<std::size_t>(stages()), 0.0);
  for (std::size_t s = 0; s < stages_here; ++s) {
    const auto stage = static_cast<std::size_t>(layout_.model_stage(StageId(s)).value);
    const StageWork work =
        row_->work(stage_begin(cuts, stage), stage_end(cuts, stage, row_->size()));
    put_memory(row_->graph(), work, s, model_);
    trained[stage] = work.trained;
  }
  for (std::size_t e = 0; e < ways_.size(); ++e) {
    const auto to = static_cast<std::size_t>(step_->edges()[e].second);
    add_received(std::max(0.0, bytes_[ways_[e].pair]), to, model_);
  }
  const UpdateBytes update = update_bytes(cuts, trained);
  Peak most;
  for (std::size_t r = 0; r < schedule_.rows().size(); ++r) {
    RowMemory held(model_, stage_graph_);
    for (const StageId stage : placement_.stages(static_cast<int>(r))) {
      held.hold_fixed(stage);
    }
    if (const double bytes = held.held() + update.of(static_cast<int>(r)).all();
        bytes > most.bytes) {
      most = {static_cast<int>(r), bytes};
    }
    for (const Cell& cell : schedule_.rows()[r]) {
      const double bytes = cell.idle() ? 0 : held.run(cell.tasks());
      if (bytes > most.bytes) {
        most = {static_cast<int>(r), bytes};
      }
    }
  }
  return most;
}

}  // namespace stagecraft
