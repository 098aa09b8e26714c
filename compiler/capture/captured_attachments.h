/// CapturedAttachments: the code of the user's program that the graph's replays call, found in what
/// autograd recorded of the run: custom functions and hooks on tensors. Kept by the recorder.
///
/// Neither is an operator, so no fallback sees it. A custom function's operators run without
/// gradients and are recorded so; that a function joined their results to autograd shows when one
/// of them is next used. Hooks may come at any time, and are looked for at the end.
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
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

class CapturedAttachments {
 public:
  /// Requires: all three outlive this.
  CapturedAttachments(Graph& graph, CapturedValues& values, CapturedConstants& constants)
      : graph_(graph), values_(values), constants_(constants) {}

  /// Appends the custom function that gave a tensor about to be used its gradient, if one did.
  /// Errors: CompileCapture for a node of autograd that was made by hand; those of
  ///         CustomFunction::take.
  void join_custom_function(const at::Tensor& tensor);

  /// Gives each value the hooks that a backward from `loss` would call with its gradient.
  /// Errors: CompileCapture for hooks that a replay could not call; those of find_hooks.
  void attach_hooks(const at::Tensor& loss);

 private:
  [[nodiscard]] std::size_t function_node_of(const at::Tensor& output,
                                             std::vector<Annotation> annotations);
  [[nodiscard]] ValueId saved_value(const at::Tensor& tensor);

  struct FunctionNode {
    std::weak_ptr<torch::autograd::Node>
        made_by;               ///< its address may be used again once it is gone
    std::size_t position = 0;  ///< in Graph::nodes
  };

  Graph& graph_;
  CapturedValues& values_;
  CapturedConstants& constants_;
  std::map<const torch::autograd::Node*, FunctionNode> functions_;
};

}  // namespace stagecraft
