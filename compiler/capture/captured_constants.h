/// CapturedConstants knows which tensors of the run depend on no input, parameter, buffer or random
/// number, and adds those that the graph reads to the graph. The recorder holds it.
///
/// An operator on constants alone is folded: its results are constants too (GR-3). The graph gets a
/// constant when a recorded operator first uses it. A constant that is only read is lifted, by
/// value. A constant that is written is made by a node of its own, since each run then writes its
/// own copy. For this purpose the views between constants are kept: a write through one of them
/// shows in the others.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "stagecraft/compiler/capture/captured_values.h"
#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

class CapturedConstants {
 public:
  /// Requires: both outlive this object.
  CapturedConstants(Graph& graph, CapturedValues& values) : graph_(graph), values_(values) {}

  /// Returns whether `see` was given the tensor. The tensor may have become dependent since then.
  [[nodiscard]] bool seen(const at::Tensor& tensor) const;
  /// Returns whether the tensor is a value of the graph, or a constant whose memory a recorded
  /// operator has written since.
  [[nodiscard]] bool dependent(const at::Tensor& tensor) const;

  /// Registers a tensor that `op` reads or returned as a constant.
  /// Errors: CompileCapture for a tensor that requires a gradient or shares memory with a value.
  void see(const c10::OperatorHandle& op, const at::Tensor& tensor);
  /// Registers the results of an operator that ran on constants alone.
  void fold(const c10::OperatorHandle& op,
            std::vector<c10::IValue> arguments,
            const torch::jit::Stack& stack);

  /// Returns the value that stands for `tensor`. Adds a constant to the graph if it is not there
  /// yet.
  ValueId value_of(const at::Tensor& tensor);
  /// Does the same for a tensor that is about to be written.
  ValueId materialize(const at::Tensor& tensor);

 private:
  struct FoldedView {
    c10::OperatorHandle op;
    std::vector<c10::IValue> arguments;
  };
  struct Lifted {
    ValueId value;
    /// The tensor's version. A tensor that was written since then is another constant.
    std::uint32_t version = 0;
  };

  ValueId lift(const at::Tensor& tensor);
  ValueId append_view(const FoldedView& view, const at::Tensor& result);

  Graph& graph_;
  CapturedValues& values_;
  std::unordered_set<c10::TensorImpl*> seen_;
  std::unordered_map<c10::TensorImpl*, Lifted> lifted_;
  std::unordered_map<c10::TensorImpl*, FoldedView> views_;
};

}  // namespace stagecraft
