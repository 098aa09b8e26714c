/// The smallest planner, to copy: every device gets the same number of operators, and 1F1B runs
/// them. It is in no registry; registry_test.cc checks it like the planners that are.
#pragma once

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft::test {

[[nodiscard]] PlannerInfo even_cut();

}  // namespace stagecraft::test
