/// The contract of every optimizer as one list of cases. The test of an optimizer adds its settings
/// to the list, with LibTorch's class where there is one; optimizer_conformance_test.cc runs all of
/// them, and fails for an optimizer of the table that has added none.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"

namespace stagecraft::testing {

/// LibTorch's class over these weights, a group for each. It has the decay of each parameter's
/// rule; the test sets the rates.
using TorchClass = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const std::vector<torch::Tensor>&, const std::vector<OptimizedParameter>&)>;

struct OptimizerCase {
  std::string name;
  Optimizer ours;
  TorchClass theirs;
  bool same_bits = false;  ///< it runs the operators of LibTorch's class, not a fused kernel
  bool takes_half = true;  ///< its state may be of half types
};

/// Returns a case against a class of LibTorch. `options` lack the decay.
template <class Class, class Options>
[[nodiscard]] OptimizerCase against(const std::string& name,
                                    const Optimizer& ours,
                                    const Options& options,
                                    bool same_bits = false) {
  const auto theirs = [options](const std::vector<torch::Tensor>& weights,
                                const std::vector<OptimizedParameter>& rules) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Options mine = options;
      mine.weight_decay(rules[i].rule.weight_decay);
      groups.emplace_back(std::vector{weights[i]}, std::make_unique<Options>(mine));
    }
    return std::make_unique<Class>(groups, options);
  };
  return {.name = name, .ours = ours, .theirs = theirs, .same_bits = same_bits};
}

/// The cases that were added.
[[nodiscard]] inline std::vector<OptimizerCase>& optimizer_cases() {
  static std::vector<OptimizerCase> all;
  return all;
}

/// Adds the cases of an optimizer before the tests run.
struct OptimizerCases {
  OptimizerCases(std::initializer_list<OptimizerCase> cases) {
    optimizer_cases().insert(optimizer_cases().end(), cases);
  }
};

/// Returns parameters "w0", "w1", ... like these, with their rules, and with the first state.
[[nodiscard]] std::vector<OptimizedParameter> parameters_like(
    const std::vector<torch::Tensor>& source,
    const Optimizer& optimizer,
    const std::vector<ParameterGroup>& groups = {});

}  // namespace stagecraft::testing
