/// TensorHooks holds the functions that the user's program registered on one tensor
/// (`tensor.register_hook(fn)`), to be called in replays.
///
/// Capture finds them on intermediate values and on parameters. The code that runs a backward calls
/// them, on its thread.
/// TH-1: a value's hooks are a node of their own directly after the one that made the value, so
///       that they see its whole gradient and run once, even if the backward is split.
/// TH-2: they exist in this process alone, since they are the user's code.
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

  /// Returns "2 hooks on w:a.weight".
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns the gradient after all hooks. A hook that returns nothing leaves it unchanged.
  [[nodiscard]] at::Tensor call(at::Tensor gradient) const;

 private:
  std::string name_;
  Calls calls_;
};

/// Returns the same values with `hooks` on their gradient; `tensor` itself if it has no gradient.
[[nodiscard]] at::Tensor with_hooks(const at::Tensor& tensor,
                                    std::shared_ptr<const TensorHooks> hooks);

/// FoundHooks holds the hooks of one tensor of a run.
struct FoundHooks {
  /// The node that made the tensor and the number of the tensor among its results; for a leaf, its
  /// accumulator.
  torch::autograd::Edge of;
  TensorHooks::Calls calls;
};

/// Returns every hook that a backward from `loss` would call.
/// Errors: CompileCapture for a hook that is on a node instead of a tensor, or that runs after the
///         accumulation.
[[nodiscard]] std::vector<FoundHooks> find_hooks(const at::Tensor& loss);

}  // namespace stagecraft
