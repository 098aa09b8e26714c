/// CutReport: where a program was cut and what each of its stages costs. For people, and for those
/// who write costs.json.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

struct StageCut {
  int first = 0;      ///< number of its first operator
  int operators = 0;  ///< how many it has
  std::string place;  ///< "between layers.3 and layers.4"; empty for the first stage
  double time = 0;    ///< seconds of forward and backward of a microbatch; 0 where not measured
  double parameter_bytes = 0;
  double crossing_bytes = 0;  ///< that it hands to other stages
};

struct CutReport {
  std::vector<StageCut> stages;
  std::vector<OperatorCost> operators;  ///< empty where nothing was measured
};

}  // namespace stagecraft
