/// costs_fields maps the names of a costs.json's numbers to their members, for its reader and its
/// writer.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/costs/operator_cost.h"

namespace stagecraft::formats {

/// KindField maps the name of a kind to its duration.
struct KindField {
  const char* name;
  double Durations::*duration;
};
inline constexpr KindField kKinds[] = {{"F", &Durations::forward},
                                       {"B", &Durations::backward},
                                       {"I", &Durations::backward_input},
                                       {"W", &Durations::backward_weight},
                                       {"U", &Durations::update},
                                       {"recompute", &Durations::recompute}};

struct BytesField {
  const char* name;
  std::vector<double> MemoryModel::*bytes;
};
inline constexpr BytesField kBytes[] = {{"fixed", &MemoryModel::fixed},
                                        {"trained", &MemoryModel::trained},
                                        {"states", &MemoryModel::states},
                                        {"activations", &MemoryModel::activations},
                                        {"transient", &MemoryModel::transient},
                                        {"replayed", &MemoryModel::replayed},
                                        {"waiting", &MemoryModel::waiting},
                                        {"input_transient", &MemoryModel::input_transient},
                                        {"weight_transient", &MemoryModel::weight_transient}};

struct OperatorField {
  const char* name;
  double OperatorCost::*value;
};
inline constexpr OperatorField kOperator[] = {{"forward", &OperatorCost::forward},
                                              {"backward_input", &OperatorCost::backward_input},
                                              {"backward_weight", &OperatorCost::backward_weight},
                                              {"kept", &OperatorCost::kept},
                                              {"transient", &OperatorCost::transient},
                                              {"waiting", &OperatorCost::waiting},
                                              {"gradient", &OperatorCost::gradient},
                                              {"sums", &OperatorCost::sums},
                                              {"update", &OperatorCost::update},
                                              {"output", &OperatorCost::output},
                                              {"input", &OperatorCost::input}};

}  // namespace stagecraft::formats
