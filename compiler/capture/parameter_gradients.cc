#include "stagecraft/compiler/capture/parameter_gradients.h"

#include <ATen/ops/ones_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/variable.h>

namespace stagecraft {

std::vector<at::Tensor> parameter_gradients(const at::Tensor& loss,
                                            const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients(parameters.size());
  torch::autograd::edge_list edges;
  std::vector<std::size_t> wanted;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].requires_grad()) {
      edges.push_back(torch::autograd::impl::gradient_edge(parameters[i]));
      wanted.push_back(i);
    }
  }
  if (!loss.requires_grad() || edges.empty()) {
    return gradients;
  }
  const std::vector<at::Tensor> found = torch::autograd::Engine::get_default_engine().execute(
      {torch::autograd::impl::gradient_edge(loss)},
      {at::ones_like(loss)},
      /*keep_graph=*/false,
      /*create_graph=*/false,
      /*accumulate_grad=*/false,
      edges);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    gradients[wanted[i]] = found[i];
  }
  return gradients;
}

}  // namespace stagecraft
