#include "stagecraft/scheduler/memory_model.h"

#include <algorithm>

namespace stagecraft {
namespace {

double of(const std::vector<double>& by_stage, StageId s) {
  return s.index() < by_stage.size() ? by_stage[s.index()] : 0;
}

}  // namespace

void RowMemory::hold_fixed(StageId stage) {
  held_ += of(model_->fixed, stage);
}

double RowMemory::released(const Task& task) const {
  const double activation = of(model_->activations, task.stage);
  const double replayed = of(model_->replayed, task.stage);
  const double early = (activation + replayed) * model_->input_release;  // by I, before its W
  const bool split = splits(task);
  if (graph_->ends_backward(task)) {
    return task.kind == CellKind::BackwardWeight && split ? activation + replayed - early
                                                          : activation;
  }
  return task.kind == CellKind::BackwardInput && split ? early - replayed : 0;
}

bool RowMemory::splits(const Task& task) const {
  return !graph_->is_surplus({CellKind::BackwardInput, task.stage, task.microbatch});
}

double RowMemory::needed(const Task& task) const {
  if (graph_->is_surplus(task)) {
    return 0;
  }
  const double transient = of(model_->transient, task.stage);
  const bool keeps_replay = task.kind == CellKind::BackwardInput && !graph_->ends_backward(task);
  return keeps_replay ? std::max(transient, of(model_->replayed, task.stage)) : transient;
}

double RowMemory::run(std::span<const Task> tasks) {
  double transient = 0;
  double freed = 0;
  for (const Task& task : tasks) {
    transient += needed(task);
    freed += released(task);
    if (task.kind == CellKind::Forward && graph_->has_backward(task.stage)) {
      held_ += of(model_->activations, task.stage);
    }
  }
  const double during = held_ + transient;
  held_ -= freed;
  return during;
}

}  // namespace stagecraft
