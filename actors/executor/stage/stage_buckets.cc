#include "stagecraft/actors/executor/stage/stage_buckets.h"

#include <algorithm>
#include <map>
#include <utility>

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
  explicit FlatBuffers(FlatMemory memory) : memory_(std::move(memory)) {}

  void reserve(const Value& like) { sizes_[like.dtype] += padded(like); }

  at::Tensor cut(const Value& like) {
    at::Tensor& buffer = buffers_[like.dtype];
    if (!buffer.defined()) {
      buffer = memory_(sizes_[like.dtype], like.dtype);
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

  FlatMemory memory_;
  std::map<at::ScalarType, std::int64_t> sizes_, used_;
  std::map<at::ScalarType, at::Tensor> buffers_;
};

FlatMemory memory_of(const c10::Device& device) {
  return [device](std::int64_t elements, at::ScalarType dtype) {
    return at::zeros({elements}, at::TensorOptions(dtype).device(device));
  };
}

/// The buffers of one bucket.
struct BucketBuffers {
  BucketBuffers(std::size_t state_tensors, const BucketOptions& options)
      : weights(memory_of(options.device)),
        gradients(options.gradient_memory ? options.gradient_memory : memory_of(options.device)),
        kept(weights),
        states(state_tensors, weights) {}

  void reserve(const Value& like, bool trained, bool optimized) {
    weights.reserve(like);
    if (trained) {
      gradients.reserve(like);
    }
    if (optimized) {
      kept.reserve(like);
      for (FlatBuffers& s : states) {
        s.reserve(like);
      }
    }
  }

  FlatBuffers weights, gradients, kept;
  std::vector<FlatBuffers> states;
};

/// Returns the bucket of each parameter. One that does not train, or that is complete in no
/// bucket's chunks, is in the first.
std::vector<std::size_t> buckets_of_parameters(const StageProgram& stage,
                                               const std::vector<ChunkRange>& chunks) {
  const std::vector<int> completing = completing_chunks(stage);
  std::vector<std::size_t> buckets;
  std::size_t trained = 0;
  for (const StageParameter& parameter : stage.parameters) {
    const int chunk = parameter.trained ? completing[trained++] : -1;
    const auto found = std::ranges::find_if(chunks, [&](const ChunkRange& range) {
      return chunk >= range.first && chunk < range.end();
    });
    buckets.push_back(found == chunks.end() ? 0 : static_cast<std::size_t>(found - chunks.begin()));
  }
  return buckets;
}

}  // namespace

StageBuckets::StageBuckets(const StageProgram& stage,
                           const Optimizer& optimizer,
                           const BucketOptions& options,
                           const std::vector<ChunkRange>& chunks)
    : optimizer_(optimizer), state_names_(state_names(optimizer)) {
  const at::NoGradGuard no_grad;
  const auto rule = [&](const StageParameter& parameter) {
    const auto dimensions = static_cast<std::int64_t>(stage.at(parameter.value).sizes.size());
    return rule_of(options.groups, options.decay_on, optimizer, parameter.name, dimensions);
  };
  const std::vector<std::size_t> bucket_of = buckets_of_parameters(stage, chunks);
  std::vector<BucketBuffers> buffers(std::max<std::size_t>(1, chunks.size()),
                                     BucketBuffers(state_names_.size(), options));
  std::vector<at::Tensor> leaves;  // of the trained ones
  for (std::size_t p = 0; p < stage.parameters.size(); ++p) {
    const StageParameter& parameter = stage.parameters[p];
    buffers[bucket_of[p]].reserve(
        stage.at(parameter.value), parameter.trained, parameter.trained && !rule(parameter).frozen);
  }
  optimized_.resize(buffers.size());
  kept_.resize(buffers.size());
  for (std::size_t p = 0; p < stage.parameters.size(); ++p) {
    const StageParameter& parameter = stage.parameters[p];
    const Value& facts = stage.at(parameter.value);
    BucketBuffers& mine = buffers[bucket_of[p]];
    at::Tensor leaf = mine.weights.cut(facts).detach();
    leaf.requires_grad_(facts.requires_grad);
    names_.push_back(parameter.name);
    parameters_.push_back(leaf);
    if (!parameter.trained) {
      continue;
    }
    all_.push_back(trained_names_.size());
    trained_names_.push_back(parameter.name);
    leaves.push_back(leaf);
    gradients_.push_back(mine.gradients.cut(facts));
    gradient_edges_.push_back(torch::autograd::impl::gradient_edge(leaf));
    const bool frozen = rule(parameter).frozen;
    positions_.push_back(parameter.counted && !frozen ? std::optional(parameter.position)
                                                      : std::nullopt);
    if (frozen) {
      continue;
    }
    std::vector<OptimizedParameter>& optimized = optimized_[bucket_of[p]];
    order_.emplace_back(bucket_of[p], optimized.size());
    OptimizedParameter& trained =
        optimized.emplace_back(OptimizedParameter{.parameter = leaf.detach(),
                                                  .gradient = gradients_.back(),
                                                  .state = {},
                                                  .rule = rule(parameter),
                                                  .name = parameter.name});
    for (FlatBuffers& s : mine.states) {
      trained.state.push_back(s.cut(facts).fill_(initial_state_value(optimizer)));
    }
    if (options.keep_gradients) {
      kept_[bucket_of[p]].push_back(mine.kept.cut(facts));
    }
  }
  sums_ = std::make_shared<GradientSums>(gradients_, leaves);
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    flat_gradients_.push_back(buffers[b].gradients.all());
    try_optimizer(optimizer, optimized_[b]);
  }
}

std::vector<SquaredNorm> StageBuckets::squared_norms(double weight) const {
  std::vector<SquaredNorm> norms;
  std::vector<at::Tensor> gradients;
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (positions_[i]) {
      norms.push_back({*positions_[i], 0.0});
      gradients.push_back(gradients_[i]);
    }
  }
  const std::vector<double> found = squared_norms_of_means(gradients, weight);
  for (std::size_t i = 0; i < norms.size(); ++i) {
    norms[i].value = found[i];
  }
  return norms;
}

void StageBuckets::keep_gradients(std::size_t bucket, double weight) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < kept_[bucket].size(); ++i) {
    at::div_out(kept_[bucket][i],
                optimized_[bucket][i].gradient,
                at::native::wrapped_scalar_tensor(weight));
  }
}

void StageBuckets::update(std::size_t bucket,
                          double learning_rate,
                          const GradientScale& scale,
                          std::int64_t step) {
  const at::NoGradGuard no_grad;
  keep_gradients(bucket, scale.weight);
  apply(optimizer_, learning_rate, step, optimized_[bucket], scale.weight / scale.clip);
}

void StageBuckets::update(double learning_rate, const GradientScale& scale, std::int64_t step) {
  for (std::size_t b = 0; b < optimized_.size(); ++b) {
    update(b, learning_rate, scale, step);
  }
}

std::vector<NamedTensor> StageBuckets::state() const {
  std::vector<NamedTensor> result;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    result.push_back({state_name(kWeight, names_[i]), parameters_[i].detach()});
  }
  for (std::size_t s = 0; s < state_names_.size(); ++s) {
    for (const auto& [bucket, i] : order_) {
      const OptimizedParameter& p = optimized_[bucket][i];
      result.push_back({state_name(state_names_[s] + ":", p.name), p.state[s]});
    }
  }
  return result;
}

std::vector<NamedTensor> StageBuckets::gradients() const {
  std::vector<NamedTensor> result;
  for (const auto& [bucket, i] : order_) {
    const OptimizedParameter& p = optimized_[bucket][i];
    result.push_back({p.name, kept_[bucket].empty() ? p.gradient : kept_[bucket][i]});
  }
  return result;
}

at::Tensor StageBuckets::gradient(std::string_view parameter) const {
  const auto found = std::ranges::find(trained_names_, parameter);
  SC_CHECK(found != trained_names_.end(), "a tied parameter trains");
  return gradients_[static_cast<std::size_t>(found - trained_names_.begin())];
}

}  // namespace stagecraft
