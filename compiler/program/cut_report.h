/// CutReport lists the cut of a program and the costs of its stages. People read it, and so do the
/// writers of costs.json.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"
#include "stagecraft/scheduler/costs/operator_cost.h"
#include "stagecraft/scheduler/costs/operator_list_hash.h"

namespace stagecraft {

struct StageCut {
  std::string name;
  int first = 0;                            ///< number of its first operator
  int operators = 0;                        ///< how many it has
  std::vector<std::pair<int, int>> ranges;  ///< their numbers, [first, last] each
  std::string place;  ///< "between layers.3 and layers.4"; empty for the first stage
  double time = 0;    ///< seconds of forward and backward of a microbatch; 0 if not measured
  double parameter_bytes = 0;
  double crossing_bytes = 0;  ///< bytes of a microbatch that it sends to other stages
};

struct CutReport {
  std::vector<StageCut> stages;
  std::vector<OperatorCost> operators;  ///< with their stages; empty if nothing was measured
  OperatorListHash operator_hash;       ///< of the whole model
};

/// Returns the report. `costs`: the cost of every operator, or empty.
[[nodiscard]] CutReport cut_report(const Graph& graph,
                                   const StageAssignment& assignment,
                                   std::vector<OperatorCost> costs);

/// Returns a line per stage with its beginning and its cost.
[[nodiscard]] std::string to_string(const CutReport& report);

}  // namespace stagecraft
