#include "stagecraft/scheduler/model/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

bool has_task(const Schedule::Row& row) {
  return !std::ranges::all_of(row, &Cell::idle);
}

}  // namespace

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

namespace {

/// Returns the ranks of rows without places: one for each row with a task.
std::vector<std::vector<Rank>> one_rank_each(const Schedule& schedule) {
  std::vector<std::vector<Rank>> ranks_of_row;
  int next = 0;
  for (const Schedule::Row& row : schedule.rows()) {
    std::vector<Rank>& ranks = ranks_of_row.emplace_back();
    if (has_task(row)) {
      ranks.emplace_back(next++);
    }
  }
  return ranks_of_row;
}

}  // namespace

/// Keeps LA-2.
void Layout::number_ranks(const Schedule& schedule) {
  if (!schedule.headers().places.empty()) {
    if (const std::string fault = place_fault(schedule); !fault.empty()) {
      throw Error(Errc::ScheduleParameter, fault);
    }
    take_places(schedule);
    return;
  }
  ranks_of_row_ = one_rank_each(schedule);
  for (int row = 0; row < rows(); ++row) {
    row_of_rank_.insert(row_of_rank_.end(), ranks_of(row).size(), row);
  }
}

namespace {

/// Returns U of LA-3. Requires: place_fault() finds nothing.
int units_of(const std::vector<std::vector<Rank>>& places) {
  int units = 1;
  for (const std::vector<Rank>& ranks : places) {
    units = std::lcm(units, std::max(1, static_cast<int>(ranks.size())));
  }
  return units;
}

}  // namespace

/// Requires: place_fault() finds nothing.
void Layout::take_places(const Schedule& schedule) {
  ranks_of_row_ = schedule.headers().places;
  ranks_of_row_.resize(schedule.rows().size());
  for (std::size_t row = 0; row < ranks_of_row_.size(); ++row) {
    for (const Rank rank : ranks_of_row_[row]) {
      row_of_rank_.resize(std::max(row_of_rank_.size(), rank.index() + 1));
      row_of_rank_[rank.index()] = static_cast<int>(row);
    }
  }
  units_ = units_of(ranks_of_row_);
}

int Layout::member_of(Rank rank) const {
  const std::span<const Rank> ranks = ranks_of(row_of(rank));
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

int Layout::units_per_rank(StageId s) const {
  return units_ / std::max(1, static_cast<int>(ranks_of(s).size()));
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

std::string place_fault(const Schedule& schedule) {
  const auto fault = [](const std::string& what) {
    return fmt::format(
        "@place {}; name for every row with a task its ranks, e.g. @place 0=0,2 1=1,3", what);
  };
  const std::vector<std::vector<Rank>>& places = schedule.headers().places;
  if (places.empty()) {
    return {};
  }
  if (places.size() > schedule.rows().size()) {
    return fault(
        fmt::format("names row {}, and there are {}", places.size() - 1, schedule.rows().size()));
  }
  std::set<Rank> named;
  std::int64_t units = 1;
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    const std::vector<Rank> ranks = r < places.size() ? places[r] : std::vector<Rank>();
    if (ranks.empty() == has_task(schedule.rows()[r])) {
      return fault(ranks.empty() ? fmt::format("gives row {} no rank", r)
                                 : fmt::format("gives row {} ranks, and it has no task", r));
    }
    for (const Rank rank : ranks) {
      if (!named.insert(rank).second) {
        return fault(fmt::format("names rank {} twice", rank.value));
      }
    }
    units = std::lcm(units, std::max<std::int64_t>(1, std::ssize(ranks)));
    if (units > kMaxRanks) {
      return fault("gives rows numbers of ranks without a small common multiple");
    }
  }
  if (!named.empty() && (named.begin()->value < 0 || named.rbegin()->index() >= named.size())) {
    return fault(
        fmt::format("names {} ranks, and not those from 0 to {}", named.size(), named.size() - 1));
  }
  return {};
}

std::vector<std::vector<Rank>> ranks_of_rows(const Schedule& schedule) {
  if (schedule.headers().places.empty() || !place_fault(schedule).empty()) {
    return one_rank_each(schedule);
  }
  std::vector<std::vector<Rank>> ranks_of_row = schedule.headers().places;
  ranks_of_row.resize(schedule.rows().size());
  return ranks_of_row;
}

std::vector<RowShare> row_shares(const Schedule& schedule) {
  std::vector<RowShare> shares(schedule.rows().size());
  if (schedule.headers().places.empty() || !place_fault(schedule).empty()) {
    return shares;
  }
  const std::vector<std::vector<Rank>>& places = schedule.headers().places;
  const int units = units_of(places);
  for (std::size_t row = 0; row < places.size(); ++row) {
    if (const auto ranks = static_cast<int>(places[row].size()); ranks > 0) {
      shares[row] = {.ranks = ranks, .units = units / ranks};
    }
  }
  return shares;
}

Schedule in_copies(const Schedule& schedule, int copies) {
  if (!schedule.headers().places.empty()) {
    throw Error(Errc::ScheduleParameter,
                "the schedule names the ranks of its rows in @place already: leave that out, or do "
                "not ask for copies");
  }
  const Layout layout = Layout::of(schedule);
  if (copies < 1 || layout.ranks() > kMaxRanks / copies) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} copies of a pipeline on {} ranks: use at least 1 copy, and at most "
                            "{} ranks",
                            copies,
                            layout.ranks(),
                            kMaxRanks));
  }
  Schedule::Headers headers = schedule.headers();
  for (int row = 0; row < layout.rows(); ++row) {
    std::vector<Rank>& ranks = headers.places.emplace_back();
    for (int copy = 0; copy < copies && !layout.ranks_of(row).empty(); ++copy) {
      ranks.emplace_back(copy * layout.ranks() + layout.ranks_of(row).front().value);
    }
  }
  return {schedule.form(), schedule.rows(), std::move(headers)};
}

}  // namespace stagecraft
