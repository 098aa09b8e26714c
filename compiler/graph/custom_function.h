/// CustomFunction is a torch::autograd::Function of the user. Its forward consists of ordinary
/// operators, which capture records as LibTorch runs them, without gradients. Its backward is code.
///
/// Capture takes the backward out of the autograd node that the run made, without the tensors that
/// this run saved. A replay joins the forward's results to autograd again with that backward and
/// with its own tensors.
/// CF-1: it is stateless, so applications of different microbatches and ranks may overlap.
/// CF-2: it exists in this process alone.
/// CF-3: its backward is called once for each forward, even if a stage's backward is split.
/// Source: the form in which LibTorch hands a function's backward to its own compiler
///         (csrc/dynamo/compiled_autograd.h).
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

  /// Returns whether Function::apply made the node.
  [[nodiscard]] static bool made(const torch::autograd::Node& node);

  struct Taken;
  /// Returns the function of a node of autograd.
  /// Errors: CompileCapture for a function whose backward cannot be called without its node:
  /// mark_dirty, mark_non_differentiable.
  [[nodiscard]] static Taken take(const std::shared_ptr<torch::autograd::Node>& node);

  /// Returns "custom function Reverse".
  [[nodiscard]] const std::string& name() const { return name_; }

  /// Returns `outputs` with this function as their maker in autograd, if a gradient is to flow.
  /// Undefined outputs stay undefined. `inputs`: one per gradient that backward returns, undefined
  /// if none is wanted. `saved`: the tensors of this run that replace capture's Taken::saved.
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
  /// The arguments that the forward left for the backward, without tensors.
  std::vector<c10::IValue> arguments_;
  std::size_t saved_variables_ = 0;  ///< position of the list of saved tensors among them
};

struct CustomFunction::Taken {
  std::shared_ptr<const CustomFunction> function;
  Tensors saved;  ///< undefined if the forward saved none
};

}  // namespace stagecraft
