/// Sgd is stochastic gradient descent, with or without momentum. Defaults and arithmetic are those
/// of torch::optim::SGD.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer_row.h"

namespace stagecraft {

struct Sgd {
  double lr = 1e-2;  ///< LibTorch's class has no default for this one
  double momentum = 0.0;
  double dampening = 0.0;
  double weight_decay = 0.0;
  bool nesterov = false;  ///< needs momentum, and no dampening
};

template <class V>
constexpr decltype(auto) visit_fields(Sgd& m, V&& v) {
  return v(m.lr, m.momentum, m.dampening, m.weight_decay, m.nesterov);
}

template <>
struct OptimizerRow<Sgd> : RowDefaults {
  static constexpr std::string_view kName = "sgd";
  static constexpr std::string_view kRecord = "Sgd";
  static constexpr std::array kSettings{
      kLearningRate,
      kMomentum,
      SettingInfo{"dampening", "dampening of the momentum"},
      kWeightDecay,
      SettingInfo{"nesterov", "use Nesterov momentum", SettingRange::Switch}};
  static std::string conflict(const Sgd& sgd);
  static std::vector<std::string> states(const Sgd& sgd);
  static void update(const Sgd& sgd, const UpdatePass& pass, ParameterColumns& columns);
};

}  // namespace stagecraft
