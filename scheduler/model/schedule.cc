#include "stagecraft/scheduler/model/schedule.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {
namespace {

int microbatch_size(const Schedule::Headers& headers, StageId stage) {
  const bool known = headers.graph && stage.value >= 0 && stage.value < headers.graph->size();
  return known ? headers.graph->microbatch_size(stage) : 1;
}

}  // namespace

Schedule::Schedule(std::initializer_list<Row> rows)
    : Schedule(Form::Array, std::vector<Row>(rows)) {}

Schedule::Schedule(Form form, std::vector<Row> rows) : Schedule(form, std::move(rows), Headers{}) {}

Schedule::Schedule(Form form, std::vector<Row> rows, Headers headers)
    : form_(form), rows_(std::move(rows)), headers_(std::move(headers)) {
  bool any_forward = false;
  for (Row& row : rows_) {
    if (form_ == Form::List) {
      std::erase_if(row, [](const Cell& cell) { return cell.idle(); });  // keeps A-1
    }
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        stages_seen_ = std::max(stages_seen_, std::min(task.stage.value, kMaxStages - 1) + 1);
        // Every microbatch has a forward; a backward beyond them is a mistake, not another
        // microbatch.
        const bool forward = task.kind == CellKind::Forward;
        if (forward && !any_forward) {
          any_forward = true;
          microbatches_seen_ = 0;
        }
        if (forward || !any_forward) {
          const int own = std::min(task.microbatch.value, kMaxMicrobatches - 1) + 1;
          const int size = microbatch_size(headers_, task.stage);
          microbatches_seen_ =
              std::max(microbatches_seen_, own > kMaxMicrobatches / size ? own : own * size);
        }
      }
    }
  }
}

std::size_t Schedule::columns() const {
  std::size_t widest = 0;
  for (const Row& row : rows_) {
    widest = std::max(widest, row.size());
  }
  return widest;
}

int Schedule::stages() const {
  if (headers_.stages) {
    return *headers_.stages;
  }
  return headers_.graph ? headers_.graph->size() : stages_seen_;
}

int Schedule::microbatches() const {
  if (headers_.microbatches) {
    return *headers_.microbatches;
  }
  return microbatches_seen_ * (headers_.graph ? headers_.graph->replicas() : 1);
}

StageGraph Schedule::stage_graph() const {
  return headers_.graph ? *headers_.graph : StageGraph::chain(stages());
}

Schedule Schedule::to_list() const {
  return Schedule(Form::List, rows_, headers_);
}

Schedule Schedule::to_array(const StageGraph& graph) const {
  const Timeline timeline = simulate(*this, graph, Costs::unit());
  const auto width = static_cast<std::size_t>(timeline.makespan);
  if (width * rows_.size() > kMaxCells) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("as an array the schedule has {} rows of {} columns, at most {} cells "
                            "are laid out; keep it a list",
                            rows_.size(),
                            width,
                            kMaxCells));
  }
  std::vector<Row> rows(rows_.size());
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    rows[r].assign(width, Cell());
    std::size_t entry = 0;
    for (const Cell& cell : rows_[r]) {
      if (!cell.idle()) {
        rows[r][static_cast<std::size_t>(timeline.rows[r].entries[entry++].start)] = cell;
      }
    }
  }
  return Schedule(Form::Array, std::move(rows), headers_);
}

}  // namespace stagecraft
