#include "stagecraft/tools/train/work/work.h"

#include "stagecraft/compiler/graph/autocast_guard.h"

namespace stagecraft::tools {

Program compile_in(Precision precision, Work& work, const WorkShape& shape) {
  const AutocastGuard autocast;
  AutocastGuard::set({.enabled = precision == Precision::BFloat16, .dtype = at::kBFloat16});
  return work.compile(shape);
}

}  // namespace stagecraft::tools
