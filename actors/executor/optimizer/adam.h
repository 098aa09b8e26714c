/// Adam holds the settings of Kingma and Ba, "Adam: a method for stochastic optimization", ICLR
/// 2015. It adds the weight decay to the gradient. Defaults and arithmetic are those of
/// torch::optim::Adam.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer_row.h"

namespace stagecraft {

struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  bool amsgrad = false;  ///< divide by the largest second moment so far; a third state tensor
};

template <class V>
constexpr decltype(auto) visit_fields(Adam& m, V&& v) {
  return v(m.lr, m.beta1, m.beta2, m.eps, m.weight_decay, m.amsgrad);
}

template <>
struct OptimizerRow<Adam> : RowDefaults {
  static constexpr std::string_view kName = "adam";
  static constexpr std::string_view kRecord = "Adam";
  static constexpr bool kKeepsSquares = true;
  static constexpr std::array kSettings{
      kLearningRate, kBeta1, kBeta2, kEps, kWeightDecay, kAmsgrad};
  static std::vector<std::string> states(const Adam& adam);
  static void update(const Adam& adam, const UpdatePass& pass, ParameterColumns& columns);
};

}  // namespace stagecraft
