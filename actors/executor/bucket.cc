#include "stagecraft/actors/executor/bucket.h"

#include <map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/actors/executor/state_names.h"
#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

constexpr std::int64_t kAlignment = 64;  // bytes

/// Cuts views of given shapes out of one zeroed buffer per dtype.
class FlatBuffers {
 public:
  void reserve(const at::Tensor& like) { size_of(like) += padded(like); }

  at::Tensor cut(const at::Tensor& like) {
    at::Tensor& buffer = buffers_[like.scalar_type()];
    if (!buffer.defined()) {
      buffer = at::zeros({size_of(like)}, like.options().requires_grad(false));
    }
    std::int64_t& used = used_[like.scalar_type()];
    const at::Tensor view = buffer.narrow(0, used, like.numel()).view(like.sizes());
    used += padded(like);
    return view;
  }

  [[nodiscard]] std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> result;
    for (const auto& [dtype, buffer] : buffers_) {
      result.push_back(buffer);
    }
    return result;
  }

 private:
  std::int64_t& size_of(const at::Tensor& like) { return sizes_[like.scalar_type()]; }
  static std::int64_t padded(const at::Tensor& t) {
    const std::int64_t step = kAlignment / static_cast<std::int64_t>(t.element_size());
    return (t.numel() + step - 1) / step * step;
  }

  std::map<at::ScalarType, std::int64_t> sizes_, used_;
  std::map<at::ScalarType, at::Tensor> buffers_;
};

}  // namespace

Bucket::Bucket(const CompiledProgram& program,
               const StageProgram& stage,
               const Optimizer& optimizer)
    : state_names_(state_names(optimizer)) {
  const at::NoGradGuard no_grad;
  const auto original = [&](std::size_t i) -> const NamedTensor& {
    return program.graph.parameters[static_cast<std::size_t>(stage.parameters[i])];
  };
  FlatBuffers weights, gradients;
  std::vector<FlatBuffers> states(state_names_.size());
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    weights.reserve(original(i).tensor);
    if (stage.trained[i]) {
      gradients.reserve(original(i).tensor);
      for (FlatBuffers& s : states) {
        s.reserve(original(i).tensor);
      }
    }
  }
  for (std::size_t i = 0; i < stage.parameters.size(); ++i) {
    const NamedTensor& from = original(i);
    at::Tensor leaf = weights.cut(from.tensor).detach();
    leaf.copy_(from.tensor);
    leaf.requires_grad_(from.tensor.requires_grad());
    names_.push_back(from.name);
    parameters_.push_back(leaf);
    if (!stage.trained[i]) {
      continue;
    }
    OptimizedParameter trained{.parameter = leaf.detach(), .gradient = gradients.cut(from.tensor)};
    for (FlatBuffers& s : states) {
      trained.state.push_back(s.cut(from.tensor));
    }
    trained_.push_back(std::move(trained));
    trained_names_.push_back(from.name);
    positions_.push_back(stage.parameters[i]);
    gradient_edges_.push_back(torch::autograd::impl::gradient_edge(leaf));
  }
  flat_gradients_ = gradients.all();
  try_optimizer(optimizer, trained_);
}

void Bucket::accumulate(const std::vector<at::Tensor>& gradients) {
  const at::NoGradGuard no_grad;
  SC_CHECK(gradients.size() == trained_.size(), "one gradient per trained parameter");
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    at::Tensor& sum = trained_[i].gradient;
    if (empty_ && gradients[i].defined()) {
      sum.copy_(gradients[i]);
    } else if (empty_) {
      sum.zero_();
    } else if (gradients[i].defined()) {
      sum.add_(gradients[i]);
    }
  }
  empty_ = false;
}

std::vector<SquaredNorm> Bucket::average(int microbatches) {
  const at::NoGradGuard no_grad;
  for (at::Tensor& flat : flat_gradients_) {
    flat.div_(microbatches);
  }
  std::vector<SquaredNorm> norms;
  for (std::size_t i = 0; i < trained_.size(); ++i) {
    const double norm = at::linalg_vector_norm(trained_[i].gradient).item<double>();
    norms.push_back({positions_[i], norm * norm});
  }
  return norms;
}

void Bucket::update(const Optimizer& optimizer,
                    double learning_rate,
                    double scale,
                    std::int64_t step) {
  const at::NoGradGuard no_grad;
  if (scale != 1.0) {
    for (at::Tensor& flat : flat_gradients_) {
      flat.mul_(scale);
    }
  }
  apply(optimizer, learning_rate, step, trained_);
}

std::vector<NamedTensor> Bucket::state() const {
  std::vector<NamedTensor> result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    result.push_back({state_name(kWeight, names_[i]), parameters_[i].detach()});
  }
  for (std::size_t s = 0; s < state_names_.size(); ++s) {
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      result.push_back(
          {std::string(state_names_[s]) + ":" + trained_names_[i], trained_[i].state[s]});
    }
  }
  return result;
}

std::vector<at::Tensor> Bucket::gradients() const {
  std::vector<at::Tensor> result;
  for (const OptimizedParameter& p : trained_) {
    result.push_back(p.gradient);
  }
  return result;
}

}  // namespace stagecraft
