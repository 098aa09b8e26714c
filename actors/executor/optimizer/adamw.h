/// AdamW is Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", ICLR 2019). Defaults and arithmetic are those of torch::optim::AdamW.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer_row.h"

namespace stagecraft {

struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;  ///< divide by the largest second moment so far; a third state tensor
};

template <class V>
constexpr decltype(auto) visit_fields(AdamW& m, V&& v) {
  return v(m.lr, m.beta1, m.beta2, m.eps, m.weight_decay, m.amsgrad);
}

template <>
struct OptimizerRow<AdamW> : RowDefaults {
  static constexpr std::string_view kName = "adamw";
  static constexpr std::string_view kRecord = "AdamW";
  static constexpr bool kKeepsSquares = true;
  static constexpr std::array kSettings{
      kLearningRate, kBeta1, kBeta2, kEps, kWeightDecay, kAmsgrad};
  static std::vector<std::string> states(const AdamW& adamw);
  static void update(const AdamW& adamw, const UpdatePass& pass, ParameterColumns& columns);
};

}  // namespace stagecraft
