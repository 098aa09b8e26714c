#include "stagecraft/actors/executor/stage/bucket.h"

#include <algorithm>
#include <map>

#include <ATen/ScalarOps.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/div.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/gradient_norm.h"
#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

constexpr std::int64_t kAlignment = 64;  // bytes

/// Cuts views of given shapes out of one zeroed buffer per dtype.
class FlatBuffers {
 public:
  void reserve(const Value& like) { sizes_[like.dtype] += padded(like); }

  at::Tensor cut(const Value& like) {
    at::Tensor& buffer = buffers_[like.dtype];
    if (!buffer.defined()) {
      buffer = at::zeros({sizes_[like.dtype]}, at::TensorOptions(like.dtype));
    }
    std::int64_t& used = used_[like.dtype];
    const at::Tensor view =
        buffer.narrow(0, used, c10::multiply_integers(like.sizes)).view(like.sizes);
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
  static std::int64_t padded(const Value& like) {
    const auto step = kAlignment / static_cast<std::int64_t>(c10::elementSize(like.dtype));
    return (c10::multiply_integers(like.sizes) + step - 1) / step * step;
  }

  std::map<at::ScalarType, std::int64_t> sizes_, used_;
  std::map<at::ScalarType, at::Tensor> buffers_;
};

}  // namespace

Bucket::Bucket(const StageProgram& stage, const Optimizer& optimizer, const BucketOptions& options)
    : optimizer_(optimizer), state_names_(state_names(optimizer)) {
  const at::NoGradGuard no_grad;
  const auto rule = [&](const StageParameter& parameter) {
    const auto dimensions = static_cast<std::int64_t>(stage.at(parameter.value).sizes.size());
    return rule_of(options.groups, options.decay_on, optimizer, parameter.name, dimensions);
  };
  FlatBuffers weights, gradients, kept;
  std::vector<at::Tensor> leaves;  // of the trained ones
  std::vector<FlatBuffers> states(state_names_.size());
  for (const StageParameter& parameter : stage.parameters) {
    const Value& facts = stage.at(parameter.value);
    weights.reserve(facts);
    if (parameter.trained) {
      gradients.reserve(facts);
    }
    if (parameter.trained && !rule(parameter).frozen) {
      kept.reserve(facts);
      for (FlatBuffers& s : states) {
        s.reserve(facts);
      }
    }
  }
  for (const StageParameter& parameter : stage.parameters) {
    const Value& facts = stage.at(parameter.value);
    at::Tensor leaf = weights.cut(facts).detach();
    leaf.requires_grad_(facts.requires_grad);
    names_.push_back(parameter.name);
    parameters_.push_back(leaf);
    if (!parameter.trained) {
      continue;
    }
    trained_names_.push_back(parameter.name);
    leaves.push_back(leaf);
    gradients_.push_back(gradients.cut(facts));
    gradient_edges_.push_back(torch::autograd::impl::gradient_edge(leaf));
    const bool frozen = rule(parameter).frozen;
    positions_.push_back(parameter.counted && !frozen ? std::optional(parameter.position)
                                                      : std::nullopt);
    if (frozen) {
      continue;
    }
    OptimizedParameter& trained =
        optimized_.emplace_back(OptimizedParameter{.parameter = leaf.detach(),
                                                   .gradient = gradients_.back(),
                                                   .state = {},
                                                   .rule = rule(parameter),
                                                   .name = parameter.name});
    for (FlatBuffers& s : states) {
      trained.state.push_back(s.cut(facts).fill_(initial_state_value(optimizer)));
    }
    if (options.keep_gradients) {
      kept_.push_back(kept.cut(facts));
    }
  }
  sums_ = std::make_shared<GradientSums>(gradients_, leaves);
  flat_gradients_ = gradients.all();
  try_optimizer(optimizer, optimized_);
}

std::vector<SquaredNorm> Bucket::squared_norms(double weight) const {
  std::vector<SquaredNorm> norms;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (positions_[i]) {
      norms.push_back({*positions_[i], squared_norm_of_mean(gradients_[i], weight)});
    }
  }
  return norms;
}

void Bucket::update(double learning_rate, const GradientScale& scale, std::int64_t step) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    at::div_out(kept_[i], optimized_[i].gradient, at::native::wrapped_scalar_tensor(scale.weight));
  }
  apply(optimizer_, learning_rate, step, optimized_, scale.weight / scale.clip);
}

std::vector<NamedTensor> Bucket::state() const {
  std::vector<NamedTensor> result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    result.push_back({state_name(kWeight, names_[i]), parameters_[i].detach()});
  }
  for (std::size_t s = 0; s < state_names_.size(); ++s) {
    for (const OptimizedParameter& p : optimized_) {
      result.push_back({state_name(state_names_[s] + ":", p.name), p.state[s]});
    }
  }
  return result;
}

std::vector<NamedTensor> Bucket::gradients() const {
  std::vector<NamedTensor> result;
  for (std::size_t i = 0; i < optimized_.size(); ++i) {
    result.push_back({optimized_[i].name, kept_.empty() ? optimized_[i].gradient : kept_[i]});
  }
  return result;
}

at::Tensor Bucket::gradient(std::string_view parameter) const {
  const auto found = std::ranges::find(trained_names_, parameter);
  SC_CHECK(found != trained_names_.end(), "a tied parameter trains");
  return gradients_[static_cast<std::size_t>(found - trained_names_.begin())];
}

}  // namespace stagecraft
