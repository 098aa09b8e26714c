/// Metric is a quantity that an evaluation measures in addition to the loss, as a function of the
/// module's outputs and the batch's labels.
///
///   sc::Metric{"accuracy", sc::accuracy}
///   sc::Metric{"error", [](torch::Tensor output, torch::Tensor label) {
///                         return (output - label).abs().mean(); }}
///
/// The caller of Trainer::evaluate makes it. It is captured together with the module, so the rank
/// that computes the loss computes it, in any process.
/// ME-1: a metric is the mean over samples of the function's result, a number or a tensor, for the
///       samples of one microbatch. A metric that is not such a mean must be computed from the
///       results of predict().
/// ME-2: it takes the same arguments as a Loss (LO-1). Two metrics are the same, and are captured
///       once, if they are copies of each other, or functions or stateless lambdas of the same
///       code.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <typeindex>
#include <utility>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/loss.h"

namespace stagecraft {

class Metric {
 public:
  template <class F>
  Metric(std::string name, F function)
      : name_(std::move(name)),
        code_(typeid(F)),
        object_(object_of(function)),
        call_(Loss(std::move(function)).call()) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const internal::LossFunction& call() const { return call_; }

  /// Compares by ME-2.
  friend bool operator==(const Metric& a, const Metric& b) {
    return a.name_ == b.name_ && a.code_ == b.code_ && a.object_ == b.object_;
  }

 private:
  template <class F>
  [[nodiscard]] static std::uint64_t object_of(const F& function) {
    if constexpr (std::is_function_v<std::remove_pointer_t<F>>) {
      return reinterpret_cast<std::uint64_t>(function);
    } else if constexpr (std::is_empty_v<F>) {
      return 0;
    } else {
      return next_object();
    }
  }
  [[nodiscard]] static std::uint64_t next_object();

  std::string name_;
  std::type_index code_;
  std::uint64_t object_;
  internal::LossFunction call_;
};

/// Returns the share of predictions whose largest value is the label's. Shapes: outputs [...,
/// classes], labels [...] of int64; returns one number in double.
[[nodiscard]] at::Tensor accuracy(const at::Tensor& outputs, const at::Tensor& labels);

}  // namespace stagecraft
