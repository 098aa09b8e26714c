/// torch_loss completes the losses of namespace torch. A pointer to such a function has lost its
/// default arguments.
///
///   .loss = torch::mse_loss
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>

namespace stagecraft::internal {

using TwoTensorLoss = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& label)>;
using OptionalTensor = std::optional<at::Tensor>;

/// Return the loss of (output, label), with all other arguments at their defaults in PyTorch.
/// Errors: UsageArgument for a function that is none of LibTorch's losses.
[[nodiscard]] TwoTensorLoss torch_loss(at::Tensor (*loss)(const at::Tensor&,
                                                          const at::Tensor&,
                                                          std::int64_t));
[[nodiscard]] TwoTensorLoss torch_loss(
    at::Tensor (*loss)(const at::Tensor&, const at::Tensor&, std::int64_t, double));
[[nodiscard]] TwoTensorLoss torch_loss(
    at::Tensor (*loss)(const at::Tensor&, const at::Tensor&, std::int64_t, bool));
[[nodiscard]] TwoTensorLoss torch_loss(
    at::Tensor (*loss)(const at::Tensor&, const at::Tensor&, double, std::int64_t));
[[nodiscard]] TwoTensorLoss torch_loss(
    at::Tensor (*loss)(const at::Tensor&, const at::Tensor&, const OptionalTensor&, std::int64_t));
[[nodiscard]] TwoTensorLoss torch_loss(at::Tensor (*loss)(
    const at::Tensor&, const at::Tensor&, const OptionalTensor&, std::int64_t, std::int64_t));
[[nodiscard]] TwoTensorLoss torch_loss(at::Tensor (*loss)(const at::Tensor&,
                                                          const at::Tensor&,
                                                          const OptionalTensor&,
                                                          std::int64_t,
                                                          std::int64_t,
                                                          double));
[[nodiscard]] TwoTensorLoss torch_loss(at::Tensor (*loss)(const at::Tensor&,
                                                          const at::Tensor&,
                                                          const OptionalTensor&,
                                                          const OptionalTensor&,
                                                          std::int64_t));
[[nodiscard]] TwoTensorLoss torch_loss(at::Tensor (*loss)(const at::Tensor&,
                                                          const at::Tensor&,
                                                          const at::Scalar&,
                                                          const at::Scalar&,
                                                          const OptionalTensor&,
                                                          std::int64_t));

template <class F>
concept HasTorchLoss = requires(F loss) {
  torch_loss(loss);
};

}  // namespace stagecraft::internal
