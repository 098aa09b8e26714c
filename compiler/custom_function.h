/// CustomFunction: a torch::autograd::Function of the user's. Its forward is made of ordinary
/// operators, which capture records as LibTorch runs them, without gradients; its backward is code.
///
/// Capture takes the backward out of the autograd node that its run made, without the tensors that
/// run saved; a replay joins the forward's results to autograd again with it, and with tensors of
/// its own.
/// CF-1: stateless: applications of different microbatches and ranks may overlap.
/// CF-2: exists in this process alone.
/// CF-3: its backward is called once for each forward, also where a stage's backward is split.
/// Source: the form in which LibTorch hands a function's backward to its own compiler
/// (csrc/dynamo/compiled_autograd.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/edge.h>

namespace stagecraft {

class CustomFunction : public std::enable_shared_from_this<CustomFunction> {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// Whether the node is one that Function::apply made.
  [[nodiscard]] static bool made(const torch::autograd::Node& node);

  struct Taken;
  /// Errors: CompileCapture for one whose backward cannot be called apart from its node:
  ///         mark_dirty, mark_non_differentiable.
  [[nodiscard]] static Taken take(const std::shared_ptr<torch::autograd::Node>& node);

  /// "custom function Reverse"
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns `outputs` with this function as what made them, where a gradient is to flow; undefined
  /// ones stay so. `inputs`: one per gradient that backward returns, undefined where none is
  /// wanted. `saved`: the tensors of this run that stand where Taken::saved had those of capture.
  [[nodiscard]] Tensors join(const Tensors& inputs,
                             const Tensors& saved,
                             const Tensors& outputs) const;

  /// Calls the user's backward.
  [[nodiscard]] Tensors backward(const Tensors& gradients,
                                 const Tensors& saved,
                                 const std::vector<bool>& wanted) const;

 private:
  using Call = std::function<Tensors(const Tensors&, const std::vector<c10::IValue>&)>;

  std::string name_;
  Call call_;
  /// What the forward left for the backward, tensors taken out.
  std::vector<c10::IValue> arguments_;
  std::size_t saved_variables_ = 0;  ///< position among them of the list of saved tensors
};

struct CustomFunction::Taken {
  std::shared_ptr<const CustomFunction> function;
  Tensors saved;  ///< undefined where the forward saved none
};

}  // namespace stagecraft
