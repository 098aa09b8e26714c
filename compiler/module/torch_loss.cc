#include "stagecraft/compiler/module/torch_loss.h"

#include <algorithm>
#include <initializer_list>

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/hinge_embedding_loss.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/multi_margin_loss.h>
#include <ATen/ops/multilabel_margin_loss.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/soft_margin_loss.h>

#include "stagecraft/base/error.h"

namespace stagecraft::internal {
namespace {

using at::Tensor;

constexpr std::int64_t kMean = at::Reduction::Mean;
constexpr std::int64_t kIgnored = -100;  // a label that counts for nothing

/// A function of the user may have the same parameters, and other defaults.
template <class F>
void require_known(F loss, std::initializer_list<F> known) {
  if (std::ranges::find(known, loss) == known.end()) {
    throw Error(Errc::UsageArgument,
                "CompileOptions::loss is a function with more parameters than output and label, "
                "whose defaults cannot be seen: wrap it in a lambda, as [](torch::Tensor output, "
                "torch::Tensor label) { return loss(output, label); }");
  }
}

}  // namespace

TwoTensorLoss torch_loss(Tensor (*loss)(const Tensor&, const Tensor&, std::int64_t)) {
  require_known(loss,
                {at::mse_loss, at::l1_loss, at::soft_margin_loss, at::multilabel_margin_loss});
  return [loss](const Tensor& output, const Tensor& label) { return loss(output, label, kMean); };
}

TwoTensorLoss torch_loss(Tensor (*loss)(const Tensor&, const Tensor&, std::int64_t, double)) {
  require_known(loss, {at::smooth_l1_loss, at::huber_loss});
  return [loss](const Tensor& output, const Tensor& label) {
    return loss(output, label, kMean, /*beta, delta*/ 1.0);
  };
}

TwoTensorLoss torch_loss(Tensor (*loss)(const Tensor&, const Tensor&, std::int64_t, bool)) {
  require_known(loss, {at::kl_div});
  return [loss](const Tensor& output, const Tensor& label) {
    return loss(output, label, kMean, /*log_target=*/false);
  };
}

TwoTensorLoss torch_loss(Tensor (*loss)(const Tensor&, const Tensor&, double, std::int64_t)) {
  require_known(loss, {at::hinge_embedding_loss});
  return [loss](const Tensor& output, const Tensor& label) {
    return loss(output, label, /*margin=*/1.0, kMean);
  };
}

TwoTensorLoss torch_loss(
    Tensor (*loss)(const Tensor&, const Tensor&, const OptionalTensor&, std::int64_t)) {
  require_known(loss, {at::binary_cross_entropy});
  return
      [loss](const Tensor& output, const Tensor& label) { return loss(output, label, {}, kMean); };
}

TwoTensorLoss torch_loss(Tensor (*loss)(
    const Tensor&, const Tensor&, const OptionalTensor&, std::int64_t, std::int64_t)) {
  require_known(loss, {at::nll_loss, at::nll_loss_nd});
  return [loss](const Tensor& output, const Tensor& label) {
    return loss(output, label, {}, kMean, kIgnored);
  };
}

TwoTensorLoss torch_loss(Tensor (*loss)(
    const Tensor&, const Tensor&, const OptionalTensor&, std::int64_t, std::int64_t, double)) {
  require_known(loss, {at::cross_entropy_loss});
  return [loss](const Tensor& output, const Tensor& label) {
    return loss(output, label, {}, kMean, kIgnored, /*label_smoothing=*/0.0);
  };
}

TwoTensorLoss torch_loss(Tensor (*loss)(
    const Tensor&, const Tensor&, const OptionalTensor&, const OptionalTensor&, std::int64_t)) {
  require_known(loss, {at::binary_cross_entropy_with_logits});
  return [loss](const Tensor& output, const Tensor& label) {
    return loss(output, label, {}, {}, kMean);
  };
}

TwoTensorLoss torch_loss(Tensor (*loss)(const Tensor&,
                                        const Tensor&,
                                        const at::Scalar&,
                                        const at::Scalar&,
                                        const OptionalTensor&,
                                        std::int64_t)) {
  require_known(loss, {at::multi_margin_loss});
  return [loss](const Tensor& output, const Tensor& label) {
    return loss(output, label, /*p=*/1, /*margin=*/1, {}, kMean);
  };
}

}  // namespace stagecraft::internal
