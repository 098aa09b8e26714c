/// WholeBackward is a node of autograd whose code computes all its gradients at once.
///
/// The engine calls a node once in a whole backward and twice in a split one, each time for some of
/// the gradients. The first call computes all gradients and keeps those that the second call needs,
/// so the code runs once for each forward.
#pragma once

#include <utility>
#include <vector>

#include <torch/csrc/autograd/function.h>

namespace stagecraft {

class WholeBackward : public torch::autograd::Node {
 public:
  using Gradients = torch::autograd::variable_list;

  Gradients apply(Gradients&& gradients) final {
    if (!kept_.empty()) {
      return std::exchange(kept_, {});
    }
    Gradients all = all_gradients(gradients);
    for (std::size_t i = 0; i < next_edges().size(); ++i) {
      if (next_edge(i).is_valid() && !task_should_compute_output(i)) {
        kept_.resize(all.size());
        kept_[i] = all[i];
      }
    }
    if (!kept_.empty()) {
      release_variables();
    }
    return all;
  }

 private:
  /// Returns a gradient for each next edge; undefined where the edge is not valid.
  [[nodiscard]] virtual Gradients all_gradients(const Gradients& gradients) = 0;

  Gradients kept_;
};

}  // namespace stagecraft
