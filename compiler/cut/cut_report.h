/// CutReport: where a program was cut and what each of its stages costs. For people, and for those
/// who write costs.json.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stagecraft/compiler/cut/stage_assignment.h"
#include "stagecraft/compiler/graph.h"
#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

struct StageCut {
  std::string name;
  int first = 0;                            ///< number of its first operator
  int operators = 0;                        ///< how many it has
  std::vector<std::pair<int, int>> ranges;  ///< their numbers, [first, last] each
  std::string place;  ///< "between layers.3 and layers.4"; empty for the first stage
  double time = 0;    ///< seconds of forward and backward of a microbatch; 0: not measured
  double parameter_bytes = 0;
  double crossing_bytes = 0;  ///< of a microbatch, that it hands to other stages
};

struct CutReport {
  std::vector<StageCut> stages;
  std::vector<OperatorCost> operators;  ///< with their stages; empty where nothing was measured
};

/// `costs`: of every operator, or empty.
[[nodiscard]] CutReport cut_report(const Graph& graph,
                                   const StageAssignment& assignment,
                                   std::vector<OperatorCost> costs);

/// A line per stage: where it begins, and what it costs.
[[nodiscard]] std::string to_string(const CutReport& report);

}  // namespace stagecraft
