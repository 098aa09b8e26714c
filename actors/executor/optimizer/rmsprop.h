/// RMSprop holds the settings of Hinton, lecture 6e, 2012, centered as in Graves, "Generating
/// sequences with recurrent neural networks", 2013. Defaults are those of torch::optim::RMSprop.
/// LibTorch has no fused kernel for it, so it runs the operators of that class, with the same bits.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer_row.h"

namespace stagecraft {

struct RMSprop {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;
};

template <class V>
constexpr decltype(auto) visit_fields(RMSprop& m, V&& v) {
  return v(m.lr, m.alpha, m.eps, m.weight_decay, m.momentum, m.centered);
}

template <>
struct OptimizerRow<RMSprop> : RowDefaults {
  static constexpr std::string_view kName = "rmsprop";
  static constexpr std::string_view kRecord = "RMSprop";
  static constexpr bool kKeepsSquares = true;
  static constexpr std::array kSettings{
      kLearningRate,
      SettingInfo{"alpha", "decay rate of the mean of squared gradients", SettingRange::Share},
      kEps,
      kWeightDecay,
      kMomentum,
      SettingInfo{"centered", "divide by the variance of the gradients", SettingRange::Switch}};
  static std::vector<std::string> states(const RMSprop& rmsprop);
  static void update(const RMSprop& rmsprop, const UpdatePass& pass, ParameterColumns& columns);
};

}  // namespace stagecraft
