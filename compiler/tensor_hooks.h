/// TensorHooks: what the user's program registered on one tensor (`tensor.register_hook(fn)`), to
/// be called in replays.
///
/// Found by capture on intermediate values and on parameters, called by whoever runs a backward, on
/// that thread.
/// TH-1: a value's hooks are a node of their own right behind the one that made it, so that they
///       see its whole gradient and run once, however the backward is split.
/// TH-2: exists in this process alone: hooks are code of the user's.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

namespace stagecraft {

class TensorHooks {
 public:
  using Calls = std::vector<std::function<at::TensorBase(const at::TensorBase&)>>;

  TensorHooks(std::string name, Calls calls) : name_(std::move(name)), calls_(std::move(calls)) {}

  /// "2 hooks on w:a.weight"
  [[nodiscard]] const std::string& name() const { return name_; }

  /// The gradient after all hooks; one that returns nothing leaves it as it is.
  [[nodiscard]] at::Tensor call(at::Tensor gradient) const;

 private:
  std::string name_;
  Calls calls_;
};

/// Returns the same values with `hooks` on their gradient; `tensor` itself where it has none.
[[nodiscard]] at::Tensor with_hooks(const at::Tensor& tensor,
                                    std::shared_ptr<const TensorHooks> hooks);

/// The hooks of one tensor of a run.
struct FoundHooks {
  /// The node that made the tensor, and which of its results it is; or a leaf's accumulator.
  torch::autograd::Edge of;
  TensorHooks::Calls calls;
};

/// Every hook that a backward from `loss` would call.
/// Errors: CompileCapture for a hook that is on a node instead of a tensor, or comes behind the
/// accumulation.
[[nodiscard]] std::vector<FoundHooks> find_hooks(const at::Tensor& loss);

}  // namespace stagecraft
