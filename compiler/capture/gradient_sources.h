/// GradientSources maps each node of autograd to the captured value that it made. CapturedValues
/// uses it to translate autograd's facts (hooks, edges of custom functions) into facts about
/// values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

class GradientSources {
 public:
  /// Records that `tensor` stands for `value` in its present state.
  void note(const at::Tensor& tensor, ValueId value);

  /// Returns the value whose gradient flows through the edge; nothing if no operator of the capture
  /// made it.
  [[nodiscard]] std::optional<ValueId> value_of(const torch::autograd::Edge& edge) const;

 private:
  struct Source {
    std::weak_ptr<torch::autograd::Node> node;  ///< the address may be reused once the node is gone
    ValueId value;
  };

  std::map<std::pair<const torch::autograd::Node*, std::uint32_t>, Source> sources_;
  std::map<const c10::TensorImpl*, ValueId> leaves_;
};

}  // namespace stagecraft
