/// Adagrad holds the settings of Duchi, Hazan and Singer, "Adaptive subgradient methods", JMLR
/// 2011. Defaults and arithmetic are those of torch::optim::Adagrad.
///
/// This is the smallest optimizer: copy it to add another one.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer_row.h"

namespace stagecraft {

struct Adagrad {
  double lr = 1e-2;
  double lr_decay = 0.0;  ///< the rate of step k (from 1) is divided by 1 + (k - 1) * lr_decay
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;
  double eps = 1e-10;
};

template <class V>
constexpr decltype(auto) visit_fields(Adagrad& m, V&& v) {
  return v(m.lr, m.lr_decay, m.weight_decay, m.initial_accumulator_value, m.eps);
}

template <>
struct OptimizerRow<Adagrad> : RowDefaults {
  static constexpr std::string_view kName = "adagrad";
  static constexpr std::string_view kRecord = "Adagrad";
  static constexpr bool kKeepsSquares = true;
  static constexpr std::array kSettings{
      kLearningRate,
      SettingInfo{"lr_decay", "decay of the learning rate per step"},
      kWeightDecay,
      SettingInfo{"initial_accumulator_value", "initial sum of squared gradients"},
      kEps};
  static double initial_state(const Adagrad& adagrad) { return adagrad.initial_accumulator_value; }
  static std::vector<std::string> states(const Adagrad& adagrad);
  static void update(const Adagrad& adagrad, const UpdatePass& pass, ParameterColumns& columns);
};

}  // namespace stagecraft
