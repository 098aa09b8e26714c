#include "stagecraft/scheduler/costs/memory_model.h"

#include <algorithm>

#include "stagecraft/scheduler/costs/shared_bytes.h"

namespace stagecraft {
namespace {

double of(const std::vector<double>& by_stage, StageId s, double otherwise = 0) {
  return s.index() < by_stage.size() ? by_stage[s.index()] : otherwise;
}

}  // namespace

void RowMemory::hold_fixed(StageId stage, Sharing sharing, int copies) {
  held_ += shared_bytes({.all = of(model_->fixed, stage),
                         .trained = of(model_->trained, stage),
                         .states = of(model_->states, stage)},
                        sharing,
                        copies);
}

double RowMemory::released(const Task& task) const {
  const double activation = of(model_->activations, task.stage);
  const bool split = splits(task);
  if (graph_->ends_backward(task)) {
    return task.kind == CellKind::BackwardWeight && split ? waiting(task.stage) : activation;
  }
  return task.kind == CellKind::BackwardInput && split ? activation - waiting(task.stage) : 0;
}

double RowMemory::waiting(StageId stage) const {
  const double kept = of(model_->activations, stage) + of(model_->replayed, stage);
  return of(model_->waiting, stage, kept * (1 - model_->input_release));
}

bool RowMemory::splits(const Task& task) const {
  return !graph_->is_surplus({CellKind::BackwardInput, task.stage, task.microbatch});
}

double RowMemory::needed(const Task& task) const {
  if (graph_->is_surplus(task)) {
    return 0;
  }
  const double transient = of(model_->transient, task.stage);
  if (task.kind == CellKind::BackwardInput && !graph_->ends_backward(task)) {
    return std::max(of(model_->input_transient, task.stage, transient),
                    of(model_->replayed, task.stage));
  }
  return task.kind == CellKind::BackwardWeight && splits(task)
             ? of(model_->weight_transient, task.stage, transient)
             : transient;
}

double RowMemory::run(std::span<const Task> tasks) {
  double transient = 0;
  double freed = 0;
  for (const Task& task : tasks) {
    transient += needed(task);
    freed += released(task);
    if (task.kind == CellKind::Forward && graph_->has_backward(task.stage)) {
      held_ += units_ * of(model_->activations, task.stage);
    }
  }
  const double during = held_ + transient;
  held_ -= units_ * freed;
  return during;
}

}  // namespace stagecraft
