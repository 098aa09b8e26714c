/// CapturedConstants: which tensors of the run hang on no input, parameter, buffer or random
/// number, and how the graph comes to hold those that it reads. Kept by the recorder.
///
/// An operator on constants alone is folded: what it returned is a constant too (GR-3). The graph
/// gets a constant when a recorded operator first meets it: lifted, by value, where it is read;
/// made by a node of its own where it is written, since each run then writes its own. Views between
/// constants are kept for that: what is written through one of them shows in the others.
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
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

class CapturedConstants {
 public:
  /// Requires: both outlive this.
  CapturedConstants(Graph& graph, CapturedValues& values) : graph_(graph), values_(values) {}

  /// Whether `see` was given the tensor. It may since have become dependent.
  [[nodiscard]] bool seen(const at::Tensor& tensor) const;
  /// Whether the tensor is a value of the graph, or a constant whose memory a recorded operator has
  /// written since.
  [[nodiscard]] bool dependent(const at::Tensor& tensor) const;

  /// Takes a tensor that `op` reads or returned for a constant.
  /// Errors: CompileCapture for one that requires a gradient, or lives in the memory of a value.
  void see(const c10::OperatorHandle& op, const at::Tensor& tensor);
  /// Takes the results of an operator that ran on constants alone.
  void fold(const c10::OperatorHandle& op,
            std::vector<c10::IValue> arguments,
            const torch::jit::Stack& stack);

  /// The value that `tensor` is; a constant enters the graph by that.
  ValueId value_of(const at::Tensor& tensor);
  /// Likewise for a tensor that is to be written.
  ValueId materialize(const at::Tensor& tensor);

 private:
  struct FoldedView {
    c10::OperatorHandle op;
    std::vector<c10::IValue> arguments;
  };
  struct Lifted {
    ValueId value;
    std::uint32_t version = 0;  ///< of the tensor: one written since is another constant
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
