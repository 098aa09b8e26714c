/// Optimizer holds the settings by which a trainer updates parameters: one of the records of the
/// table, or a CustomOptimizer. Defaults and arithmetic of the records are those of LibTorch's
/// classes of the same names.
///
/// They are plain records: `visit_fields` lists the fields that travel to a rank.
/// optimizer_registry.h has the functions for all of them.
#pragma once

#include <variant>

#include "stagecraft/actors/executor/optimizer/custom_optimizer.h"
#include "stagecraft/actors/executor/optimizer/optimizer_table.h"

namespace stagecraft {

using Optimizer = EachOptimizer<std::variant, CustomOptimizer>;

[[nodiscard]] inline double base_learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

[[nodiscard]] inline double base_weight_decay(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.weight_decay; }, optimizer);
}

}  // namespace stagecraft
