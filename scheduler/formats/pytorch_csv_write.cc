/// Writes PyTorch's CSV, with and without communication.
///
/// Communication follows the columns of the earliest array: the results of a column are sent after
/// it, and the other row issues the receive at that moment. So all rows follow one order of time,
/// and no choice of streams can make them wait in a circle.
#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

std::string cell_csv(const Cell& cell) {
  if (cell.idle()) {
    return "";
  }
  const auto tasks = cell.tasks();
  if (!cell.is_group()) {
    return to_string(tasks.front());
  }
  return fmt::format("({};{})OVERLAP_F_B", to_string(tasks[0]), to_string(tasks[1]));
}

/// Returns the neighbor on that side of a chain, or nothing at its end.
std::optional<StageId> neighbor(std::span<const StageId> neighbors) {
  return neighbors.empty() ? std::nullopt : std::optional<StageId>(neighbors.front());
}

class CommsWriter {
 public:
  CommsWriter(const Schedule& list, const StageGraph& graph)
      : list_(list),
        graph_(graph),
        placement_(Placement::of(list, graph.size())),
        lines_(list.rows().size()),
        last_(list.rows().size()) {}
  std::string write();

 private:
  struct Place {
    std::size_t row;
    std::size_t position;
  };
  [[nodiscard]] std::vector<std::vector<Place>> columns() const;
  void add(std::size_t row, std::string_view cell);
  void add(std::size_t row, CommKind kind, StageId s, Microbatch m = {});
  void gather();
  void transfer(std::size_t row, const Task& task);
  void finish(const Place& place);

  const Schedule& list_;
  const StageGraph& graph_;
  Placement placement_;
  std::vector<std::string> lines_;
  std::vector<std::map<StageId, std::size_t>> last_;  // by row: position of each stage's last task
};

void CommsWriter::add(std::size_t row, std::string_view cell) {
  std::string& line = lines_[row];
  line += line.empty() ? "" : ",";
  line += cell;
}

void CommsWriter::add(std::size_t row, CommKind kind, StageId s, Microbatch m) {
  add(row, to_string(CommAction{kind, s, m}));
}

/// Returns the tasks that start in each column, by row.
std::vector<std::vector<CommsWriter::Place>> CommsWriter::columns() const {
  const Timeline timeline = simulate(list_, graph_, Costs::unit());
  std::vector<std::vector<Place>> columns(static_cast<std::size_t>(timeline.makespan));
  for (std::size_t r = 0; r < timeline.rows.size(); ++r) {
    for (std::size_t i = 0; i < timeline.rows[r].entries.size(); ++i) {
      columns[static_cast<std::size_t>(timeline.rows[r].entries[i].start)].push_back({r, i});
    }
  }
  return columns;
}

void CommsWriter::gather() {
  for (std::size_t r = 0; r < list_.rows().size(); ++r) {
    const Schedule::Row& row = list_.rows()[r];
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (const Task& task : row[i].tasks()) {
        last_[r][task.stage] = i;
      }
    }
    for (const auto& [stage, position] : last_[r]) {
      add(r, CommKind::Unshard, stage);
    }
  }
}

/// Sends the task's result to the row that needs it, if that is another row.
void CommsWriter::transfer(std::size_t row, const Task& task) {
  const bool forward = task.kind == CellKind::Forward;
  const StageId s = task.stage;
  const auto peer = neighbor(forward ? graph_.succs(s) : graph_.preds(s));
  if (!peer || task.kind == CellKind::BackwardWeight) {
    return;
  }
  const auto to = placement_.row(*peer);
  const bool owed = forward || graph_.sends_gradient(s, *peer);
  if (!owed || !to || *to == static_cast<int>(row)) {
    return;
  }
  add(row, forward ? CommKind::SendForward : CommKind::SendBackward, s, task.microbatch);
  add(static_cast<std::size_t>(*to),
      forward ? CommKind::RecvForward : CommKind::RecvBackward,
      *peer,
      task.microbatch);
}

void CommsWriter::finish(const Place& place) {
  for (const auto& [stage, position] : last_[place.row]) {
    if (position == place.position) {
      add(place.row, CommKind::ReduceGrad, stage);
      add(place.row, CommKind::Reshard, stage);
    }
  }
}

std::string CommsWriter::write() {
  gather();
  for (const auto& column : columns()) {
    for (const Place& place : column) {
      add(place.row, cell_csv(list_.rows()[place.row][place.position]));
    }
    for (const Place& place : column) {
      for (const Task& task : list_.rows()[place.row][place.position].tasks()) {
        transfer(place.row, task);
      }
    }
    for (const Place& place : column) {
      finish(place);
    }
  }
  std::string text;
  for (const std::string& line : lines_) {
    text += line + '\n';
  }
  return text;
}

}  // namespace

std::string to_pytorch_csv(const Schedule& schedule) {
  std::string text;
  for (const Schedule::Row& row : schedule.rows()) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? "" : ",";
      text += cell_csv(row[i]);
    }
    text += '\n';
  }
  return text;
}

std::string to_pytorch_comms_csv(const Schedule& schedule, const StageGraph& graph) {
  const Schedule list = schedule.to_list();
  return CommsWriter(list, graph).write();
}

}  // namespace stagecraft
