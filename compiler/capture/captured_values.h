/// CapturedValues maps each tensor of the run to its value in the graph. The recorder holds it.
///
/// It identifies a tensor by its TensorImpl and its memory by its StorageImpl. Values that share
/// storage have the same alias set. Weak references keep both addresses from being reused, without
/// keeping the memory of dead tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/compiler/capture/gradient_sources.h"
#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

class CapturedValues {
 public:
  /// Requires: `graph` outlives this object.
  explicit CapturedValues(Graph& graph) : graph_(graph) {}

  /// Returns the value that stands for `tensor`.
  [[nodiscard]] std::optional<ValueId> find(const at::Tensor& tensor) const;
  /// Returns the value whose gradient flows through the edge.
  [[nodiscard]] std::optional<ValueId> find(const torch::autograd::Edge& edge) const;
  /// Returns a value that shows the same part of the same memory as `tensor`, possibly through
  /// another handle.
  [[nodiscard]] std::optional<ValueId> find_same_memory(const at::Tensor& tensor) const;
  /// Returns whether a value lives in the tensor's storage.
  [[nodiscard]] bool share_storage_with(const at::Tensor& tensor) const;

  /// Makes a new value of the graph that stands for `tensor` from now on.
  ValueId add(const at::Tensor& tensor, ValueKind kind, int position);
  /// Does the same for a result of the graph's next node. If the operator wrote a value in place,
  /// the result is that value in its present state.
  ValueId add_result(const at::Tensor& tensor);
  /// Appends a node that the module did not call itself, with `result` as its result.
  ValueId append(Node node, const at::Tensor& result);

  /// Returns the number of the tensor's storage among those seen; 0 for a tensor without storage.
  int alias_set_of(const at::Tensor& tensor);
  /// Keeps the address of a tensor that is not a value from being reused.
  void hold(const at::Tensor& tensor);

 private:
  /// Layout describes the part of its storage that a tensor shows.
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

  Graph& graph_;
  std::unordered_map<c10::TensorImpl*, ValueId> values_;
  std::unordered_map<c10::StorageImpl*, int> alias_sets_;
  std::unordered_map<int, std::vector<std::pair<ValueId, Layout>>> values_of_set_;
  GradientSources gradients_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> impls_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storages_;
};

}  // namespace stagecraft
