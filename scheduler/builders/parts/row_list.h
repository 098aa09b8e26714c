/// RowList is the list of one row while a builder writes it. finish() is the last step that all
/// builders share.
///
/// RW-1: builders write lists; only the unit-time simulation makes columns.
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

class RowList {
 public:
  void forward(int stage, int microbatch) { add(CellKind::Forward, stage, microbatch); }
  void backward(int stage, int microbatch) { add(CellKind::Backward, stage, microbatch); }
  void backward_input(int stage, int microbatch) {
    add(CellKind::BackwardInput, stage, microbatch);
  }
  void backward_weight(int stage, int microbatch) {
    add(CellKind::BackwardWeight, stage, microbatch);
  }
  void group(const Task& a, const Task& b) { cells_.emplace_back(std::vector<Task>{a, b}); }

  [[nodiscard]] Schedule::Row take() { return std::move(cells_); }

 private:
  void add(CellKind kind, int stage, int microbatch) {
    cells_.emplace_back(Task{kind, StageId(stage), Microbatch(microbatch)});
  }

  Schedule::Row cells_;
};

/// Returns the rows as the unit-time array. The graph becomes a header unless it is one chain that
/// takes microbatches of size 1.
[[nodiscard]] Schedule finish(std::vector<Schedule::Row> rows,
                              const StageGraph& stages,
                              int microbatches);

/// Errors: ScheduleParameter with `builder`, its requirement and the value that it got.
void require_positive(std::string_view builder, std::string_view what, int value);
void require_acyclic(std::string_view builder, const StageGraph& stages);

/// Checks a constraint given as words and as a test, as require_positive() does. The error names
/// the nearest legal values below and above `value`.
void require_legal(std::string_view builder,
                   std::string_view constraint,
                   std::string_view what,
                   int value,
                   const std::function<bool(int)>& legal);

}  // namespace stagecraft
