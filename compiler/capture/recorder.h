/// Recorder turns the operators of one run into a Graph. Only capture uses it, on the thread that
/// runs the module.
///
/// An operator is *dependent* if one of its operands depends on an input, parameter, buffer or
/// random number. A dependent operator is recorded or refused; the others are folded. The
/// recorder's parts know whether a tensor of the run is a value, a constant, or the result of the
/// user's own code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "stagecraft/compiler/capture/captured_attachments.h"
#include "stagecraft/compiler/capture/captured_constants.h"
#include "stagecraft/compiler/capture/captured_values.h"
#include "stagecraft/compiler/capture/fixed_values.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/module/workload.h"

namespace stagecraft {

class Recorder {
 public:
  Recorder(const Workload& workload, const Tensors& inputs, const Tensors& labels);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Examines an operator that is about to run. Returns true if it is recorded, false if it will be
  /// folded.
  /// Errors: CompileCapture, for an operator that cannot be replayed.
  bool before(const c10::OperatorHandle& op, const torch::jit::Stack& stack, int random_index);
  /// Records the results of an operator that `before` recorded.
  void after(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  /// Records the results of an operator that ran on constants only.
  void folded(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  /// Examines an operator that the running operator calls inside.
  /// Errors: CompileCapture, for a read of values that depend on the input.
  void check_hidden_read(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  /// Returns the name of the recorded operator that is running, for messages.
  [[nodiscard]] std::string running() const;
  /// Returns " (near layers.3.attention)", the module whose parameters were used last; "" before
  /// any use.
  [[nodiscard]] std::string whereabouts() const;

  /// Completes the graph. `loss`: undefined if there is none.
  /// Errors: CompileCapture for a loss that depends on nothing, CompileShape for a loss that is not
  ///         a scalar.
  [[nodiscard]] Graph finish(const Tensors& outputs,
                             const at::Tensor& loss,
                             const Tensors& metrics);

 private:
  [[nodiscard]] bool adopt(const at::Tensor& tensor);
  [[nodiscard]] Node node_of(const c10::OperatorHandle& op,
                             const std::vector<c10::IValue>& arguments,
                             int random_index);
  void record_results(Node& node, const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  [[nodiscard]] bool is_same_in_every_run(const at::Tensor& tensor);
  [[nodiscard]] bool are_same_in_every_run(const std::vector<c10::IValue>& arguments);
  [[nodiscard]] bool has_fixed_shape(const c10::OperatorHandle& op,
                                     const std::vector<c10::IValue>& arguments);
  void check_parameter_write(const c10::OperatorHandle& op, const at::Tensor& written) const;
  void take_loss(const at::Tensor& loss);

  Graph graph_;
  CapturedValues values_{graph_};
  CapturedConstants constants_{graph_, values_};
  CapturedAttachments attachments_{graph_, values_, constants_};
  FixedValues fixed_{graph_};
  std::optional<Node> open_;  ///< the recorded operator that is running
  /// True if the running operator's shape depends only on values that are the same in every run.
  bool open_is_fixed_ = false;
  std::vector<c10::IValue> folding_;  ///< the arguments of the folded operator that is running
};

}  // namespace stagecraft
