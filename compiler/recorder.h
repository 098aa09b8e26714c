/// Recorder: turns the operators of one run into a Graph. Used by capture alone, on the thread that
/// runs the module.
///
/// Tensors are known by their TensorImpl. Weak references keep the small impls (so that no address
/// is used twice) without keeping the storages of dead values.
///
/// An operator is *dependent* when one of its operands hangs on an input, parameter, buffer or
/// random number; others are folded. What is folded is lifted into the graph by value, when a
/// dependent operator first reads it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture.h"
#include "stagecraft/compiler/gradient_sources.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

/// True when the operator, called like this, takes numbers from a generator (dropout with p = 0
/// does not).
[[nodiscard]] bool draws_random_numbers(const c10::OperatorHandle& op,
                                        const torch::jit::Stack& stack);

/// The position of the operator's generator argument.
[[nodiscard]] std::optional<std::size_t> generator_argument(const c10::OperatorHandle& op);

/// " (in stage "x")", " (in the loss)" or " (outside all stages)": the end of every capture
/// message.
[[nodiscard]] std::string under_marker();

class Recorder {
 public:
  Recorder(const Workload& workload, const Tensors& inputs, const Tensors& labels);

  /// Looks at an operator about to run; true when it is recorded, false when it is to be folded.
  /// Errors: CompileCapture, for what cannot be replayed.
  bool before(const c10::OperatorHandle& op, const torch::jit::Stack& stack, int random_index);
  /// Takes the results of an operator that `before` recorded.
  void after(const c10::OperatorHandle& op, const torch::jit::Stack& stack);
  /// Takes the results of an operator that ran on constants only.
  void folded(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  void check_hidden_read(const c10::OperatorHandle& op, const torch::jit::Stack& stack) const;
  [[noreturn]] void refuse_hidden_draw(const c10::OperatorHandle& op) const;

  [[nodiscard]] Graph finish(const Tensors& outputs, const at::Tensor& loss);

 private:
  using Impl = c10::TensorImpl*;
  /// Which part of its storage a tensor shows.
  struct Layout {
    std::vector<std::int64_t> sizes, strides;
    std::int64_t offset = 0;
    at::ScalarType dtype = at::kFloat;

    explicit Layout(const at::Tensor& t)
        : sizes(t.sizes().vec()),
          strides(t.strides().vec()),
          offset(t.storage_offset()),
          dtype(t.scalar_type()) {}
    friend bool operator==(const Layout&, const Layout&) = default;
  };
  struct FoldedView {
    c10::OperatorHandle op;
    std::vector<c10::IValue> arguments;
  };

  ValueId add_value(const at::Tensor& tensor, ValueKind kind, int position);
  ValueId value_of(const at::Tensor& tensor);
  ValueId lift(const at::Tensor& tensor);
  ValueId materialize(const at::Tensor& tensor);
  void append_view(const FoldedView& view, const at::Tensor& result);
  [[nodiscard]] bool dependent(const at::Tensor& tensor) const;
  bool adopt(const at::Tensor& tensor);
  void see_constant(const c10::OperatorHandle& op, const at::Tensor& tensor);
  int alias_set_of(const at::Tensor& tensor);
  void hold(const at::Tensor& tensor);
  void refuse_chance(const c10::OperatorHandle& op, const Node& node) const;
  void refuse_unreplayable(const c10::OperatorHandle& op,
                           const std::vector<c10::IValue>& arguments) const;
  void join_custom_function(const at::Tensor& tensor);
  [[nodiscard]] std::size_t function_node_of(const at::Tensor& output,
                                             std::vector<Annotation> annotations);
  [[nodiscard]] ValueId saved_value(const at::Tensor& tensor);
  void attach_hooks(const at::Tensor& loss);
  void refuse_parameter_write(const Node& node, const at::Tensor& written) const;
  Operand operand_of(const c10::OperatorHandle& op,
                     const c10::IValue& argument,
                     std::size_t position,
                     bool random);
  Node node_of(const c10::OperatorHandle& op,
               const std::vector<c10::IValue>& arguments,
               int random_index);
  void record_results(Node& node, const c10::OperatorHandle& op, const torch::jit::Stack& stack);

  Graph graph_;
  std::optional<Node> open_;          ///< the recorded operator that is running
  std::vector<c10::IValue> folding_;  ///< the arguments of the folded operator that is running
  std::unordered_map<Impl, ValueId> values_;
  std::unordered_map<Impl, std::pair<ValueId, std::uint32_t>>
      lifted_;  ///< constants by value, with the version lifted
  std::unordered_set<Impl> constants_;
  std::unordered_map<Impl, FoldedView> folded_views_;
  std::unordered_map<c10::StorageImpl*, int> alias_sets_;
  std::unordered_map<int, std::vector<std::pair<ValueId, Layout>>> values_of_set_;
  GradientSources gradients_;
  std::map<const torch::autograd::Node*,
           std::pair<std::weak_ptr<torch::autograd::Node>, std::size_t>>
      functions_;                           ///< node of the graph
  std::unordered_set<int> dependent_sets_;  ///< alias sets in which a dependent value lives
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> impls_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
};

}  // namespace stagecraft
