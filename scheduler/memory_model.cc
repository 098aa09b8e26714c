#include "stagecraft/scheduler/memory_model.h"

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
  const double early = activation * model_->input_release;  // by I, where there is a W to come
  const bool split = !graph_->is_surplus({CellKind::BackwardInput, task.stage, task.microbatch});
  if (graph_->ends_backward(task)) {
    return task.kind == CellKind::BackwardWeight && split ? activation - early : activation;
  }
  return task.kind == CellKind::BackwardInput && split ? early : 0;
}

double RowMemory::run(std::span<const Task> tasks) {
  double transient = 0;
  double freed = 0;
  for (const Task& task : tasks) {
    transient += graph_->is_surplus(task) ? 0 : of(model_->transient, task.stage);
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
