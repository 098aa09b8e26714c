/// FusePlan: how a region of a stage, forward and backward, is computed in fused passes; made once
/// by running the region as it is on example tensors.
///
/// FP-1: a plan has been tried on examples of the very shapes, strides, dtypes and number of
///       threads it is for: outputs, gradients and their strides were, bit by bit, those of the
///       operators one by one. A region for which they were not has a fault, and no plan.
/// FP-2: of what a backward reads, the inputs and outputs of the region and what is small are kept,
///       and results of functions; what is cheap is computed again, block by block, unless that
///       would keep more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/fuse/fuse_report.h"
#include "stagecraft/compiler/fuse/passes.h"
#include "stagecraft/compiler/fuse/trace.h"

namespace stagecraft {

/// Runs a region operator by operator.
using PlainRegion = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// What a plan is for.
struct RegionCase {
  struct Input {
    TensorFacts facts;
    bool requires_grad = false;

    friend auto operator<=>(const Input&, const Input&) = default;
  };
  std::vector<Input> inputs;
  bool gradients = false;  ///< autograd records
  int threads = 1;         ///< of LibTorch

  friend auto operator<=>(const RegionCase&, const RegionCase&) = default;
};

class FusePlan {
 public:
  /// On a thread with as many of LibTorch's as the case says.
  FusePlan(PlainRegion plain, RegionCase made_for);

  /// Why there is no plan; empty where there is one.
  [[nodiscard]] const std::string& fault() const { return fault_; }

  struct Forward {
    std::vector<at::Tensor> outputs;
    std::vector<at::Tensor> saved;  ///< for backward()
  };
  /// Computes the region. Requires: inputs as the case says, no fault.
  [[nodiscard]] Forward forward(const std::vector<at::Tensor>& inputs) const;

  /// Whether an output hangs on an input that requires a gradient.
  [[nodiscard]] const std::vector<bool>& outputs_require_grad() const { return require_grad_; }

  /// Gradients of the inputs in `needed`; undefined ones of the others, and where none arrives.
  [[nodiscard]] std::vector<at::Tensor> backward(const std::vector<at::Tensor>& saved,
                                                 const std::vector<at::Tensor>& output_gradients,
                                                 const std::vector<bool>& needed) const;

  [[nodiscard]] PassCounts forward_counts() const;
  /// Of the whole backward.
  [[nodiscard]] PassCounts backward_counts() const;

 private:
  struct Examples;
  /// A backward for gradients that look like this.
  struct GradientCase {
    std::vector<std::optional<TensorFacts>> gradients;
    std::vector<bool> needed;

    friend auto operator<=>(const GradientCase&, const GradientCase&) = default;
  };
  struct Backward {
    std::vector<TracedValue> gradients;  // of the outputs
    std::vector<TracedValue> results;    // per input
    std::size_t values = 0;
    Passes passes;
  };

  [[nodiscard]] std::vector<TracedValue> inputs() const;
  void make_forward(const Examples& examples);
  void choose_saved(const Examples& examples);
  [[nodiscard]] static std::set<TracedValue> forward_values_read(const Examples& examples);
  [[nodiscard]] Backward backward_of(const Examples& examples) const;
  [[nodiscard]] const Backward& backward_for(const GradientCase& like) const;
  [[nodiscard]] std::vector<at::Tensor> run(const Backward& backward,
                                            const std::vector<at::Tensor>& saved,
                                            const std::vector<at::Tensor>& gradients) const;
  PlainRegion plain_;
  RegionCase case_;
  std::string fault_;
  std::vector<bool> require_grad_;
  std::size_t values_ = 0;
  std::vector<TracedValue> outputs_, saved_;
  std::optional<BlockDomain> domain_;
  Passes forward_;
  mutable std::mutex mutex_;  // plans are shared by ranks of a process
  mutable std::map<GradientCase, Backward> backwards_;
};

}  // namespace stagecraft
