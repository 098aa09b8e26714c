/// Choice: what a run does in the places where the options leave it open: how its work is divided,
/// in which order ranks compute, and where it ends.
///
/// Made by decide() alone.
#pragma once

#include <cstdint>

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/tools/train/work/work_shape.h"

namespace stagecraft::tools {

struct Choice {
  WorkShape shape;
  Schedule schedule;
  Layout layout;           ///< of the schedule
  std::int64_t steps = 0;  ///< the step at which the run ends
};

}  // namespace stagecraft::tools
