/// GradientSources: which captured value each node of autograd made. A part of CapturedValues, so
/// that what autograd knows (hooks, edges of custom functions) can be said of values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

class GradientSources {
 public:
  /// `tensor` is `value`, as it is now.
  void note(const at::Tensor& tensor, ValueId value);

  /// Whose gradient flows through the edge; nothing for what no operator of the capture made.
  [[nodiscard]] std::optional<ValueId> value_of(const torch::autograd::Edge& edge) const;

 private:
  struct Source {
    std::weak_ptr<torch::autograd::Node> node;  ///< its address may be used again once it is gone
    ValueId value;
  };

  std::map<std::pair<const torch::autograd::Node*, std::uint32_t>, Source> sources_;
  std::map<const c10::TensorImpl*, ValueId> leaves_;
};

}  // namespace stagecraft
