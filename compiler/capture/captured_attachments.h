/// CapturedAttachments finds the code of the user's program that replays of the graph must call:
/// custom functions and hooks on tensors. It finds them in the nodes that autograd recorded during
/// the run. The recorder holds it.
///
/// Neither is an operator, so no fallback sees it. A custom function's operators run without
/// gradients and are recorded like that. Only the next use of one of their results shows that a
/// function joined them to autograd. Hooks may be added at any time, so the recorder looks for them
/// at the end.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/compiler/capture/captured_constants.h"
#include "stagecraft/compiler/capture/captured_values.h"
#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

class CapturedAttachments {
 public:
  /// Requires: all three outlive this object.
  CapturedAttachments(Graph& graph, CapturedValues& values, CapturedConstants& constants)
      : graph_(graph), values_(values), constants_(constants) {}

  /// Appends the custom function that gave `tensor` its gradient, if one did. Called when the
  /// tensor is about to be used.
  /// Errors: CompileCapture for a node of autograd that was made by hand; the errors of
  ///         CustomFunction::take.
  void join_custom_function(const at::Tensor& tensor);

  /// Gives each value the hooks that a backward from `loss` would call with the value's gradient.
  /// Errors: CompileCapture for hooks that a replay could not call; the errors of find_hooks.
  void attach_hooks(const at::Tensor& loss);

 private:
  [[nodiscard]] std::size_t function_node_of(const at::Tensor& output,
                                             std::vector<Annotation> annotations);
  [[nodiscard]] ValueId saved_value(const at::Tensor& tensor);

  struct FunctionNode {
    std::weak_ptr<torch::autograd::Node>
        made_by;               ///< the address may be reused once the node is gone
    std::size_t position = 0;  ///< in Graph::nodes
  };

  Graph& graph_;
  CapturedValues& values_;
  CapturedConstants& constants_;
  std::map<const torch::autograd::Node*, FunctionNode> functions_;
};

}  // namespace stagecraft
