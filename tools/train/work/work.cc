#include "stagecraft/tools/train/work/work.h"

#include "stagecraft/compiler/graph/autocast_guard.h"

namespace stagecraft::tools {

std::optional<LossScaling> loss_scaling_of(Precision precision) {
  return precision == Precision::Float16 ? std::optional(LossScaling{}) : std::nullopt;
}

Program compile_in(Precision precision, Work& work, const WorkShape& shape) {
  const AutocastGuard autocast;
  AutocastGuard::set({.enabled = precision != Precision::Float32,
                      .dtype = precision == Precision::Float16 ? at::kHalf : at::kBFloat16});
  return work.compile(shape);
}

}  // namespace stagecraft::tools
