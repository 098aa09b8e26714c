#include "stagecraft/scheduler/model/schedule.h"

#include <algorithm>
#include <utility>

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

std::string row_name(const Schedule& schedule, std::size_t row) {
  const bool is_driver = schedule.headers().has_driver_row && row + 1 == schedule.rows().size();
  return is_driver ? "driver" : "d" + std::to_string(row);
}

}  // namespace stagecraft
