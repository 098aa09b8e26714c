#include "stagecraft/actors/executor/stage/stage_buckets.h"

#include <algorithm>
#include <iterator>
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

/// Cuts tensors out of one zeroed buffer per dtype, in the order in which they were reserved.
class FlatBuffers {
 public:
  explicit FlatBuffers(FlatMemory memory, std::int32_t shards = 1)
      : memory_(std::move(memory)), shards_(shards) {}

  void reserve(at::ScalarType dtype, std::int64_t elements) {
    buffers_[dtype].elements.push_back(elements);
  }

  at::Tensor cut(at::ScalarType dtype, at::IntArrayRef sizes) {
    Buffer& buffer = buffers_.at(dtype);
    if (!buffer.memory.defined()) {
      buffer.layout = shard_layout(buffer.elements,
                                   kAlignment / static_cast<std::int64_t>(c10::elementSize(dtype)),
                                   shards_);
      buffer.memory = memory_(buffer.layout.size(), dtype);
    }
    const std::size_t next = buffer.cut++;
    return buffer.memory.narrow(0, buffer.layout.begins[next], buffer.elements[next]).view(sizes);
  }

  [[nodiscard]] std::vector<at::Tensor> all() const {
    std::vector<at::Tensor> result;
    for (const auto& [dtype, buffer] : buffers_) {
      result.push_back(buffer.memory);
    }
    return result;
  }

  /// Returns the number of the dtype's buffer in all().
  [[nodiscard]] std::size_t number_of(at::ScalarType dtype) const {
    return static_cast<std::size_t>(std::distance(buffers_.begin(), buffers_.find(dtype)));
  }
  /// Returns the part of the tensor that was cut last, in a shard.
  [[nodiscard]] ShardLayout::Part last_part(at::ScalarType dtype, std::int32_t shard) const {
    const Buffer& buffer = buffers_.at(dtype);
    return buffer.layout.part(buffer.cut - 1, shard);
  }

 private:
  struct Buffer {
    std::vector<std::int64_t> elements;  // of its tensors
    std::size_t cut = 0;                 // so many of them
    ShardLayout layout;
    at::Tensor memory;
  };

  FlatMemory memory_;
  std::int32_t shards_;
  std::map<at::ScalarType, Buffer> buffers_;
};

FlatMemory memory_of(const c10::Device& device) {
  return [device](std::int64_t elements, at::ScalarType dtype) {
    return at::zeros({elements}, at::TensorOptions(dtype).device(device));
  };
}

/// The buffers of one bucket. Weights of trained parameters lie as their gradients do.
struct BucketBuffers {
  BucketBuffers(std::size_t state_tensors, const BucketOptions& options, std::int32_t shards)
      : gradients(options.lent_memory ? options.lent_memory : memory_of(options.device), shards),
        weights(shards > 1 ? gradients : FlatBuffers(memory_of(options.device))),
        others(memory_of(options.device)),
        kept(others),
        states(state_tensors, others) {}

  FlatBuffers gradients, weights;
  FlatBuffers others;  // weights that do not train
  FlatBuffers kept;
  std::vector<FlatBuffers> states;
};

std::int64_t elements_of(const Value& like) {
  return c10::multiply_integers(like.sizes);
}

/// Returns whether a shard has all elements of a parameter. The first one has those without any.
bool has_all(const ShardLayout::Part& part, std::int64_t elements, std::int32_t shard) {
  return part.size() == elements && (elements > 0 || shard == 0);
}

/// Returns the elements of a part of a parameter, in one dimension if it is not the whole.
at::Tensor part_of(const at::Tensor& whole, const ShardLayout::Part& part) {
  return part.size() == whole.numel() ? whole : whole.view(-1).narrow(0, part.begin, part.size());
}

/// Returns tensors in the shapes of the gradients.
std::vector<at::Tensor> like_gradients(FlatBuffers& memory,
                                       const std::vector<OptimizedParameter>& of) {
  for (const OptimizedParameter& p : of) {
    memory.reserve(p.gradient.scalar_type(), p.gradient.numel());
  }
  std::vector<at::Tensor> made;
  for (const OptimizedParameter& p : of) {
    made.push_back(memory.cut(p.gradient.scalar_type(), p.gradient.sizes()));
  }
  return made;
}

/// Returns the runs of blocks of a part, whose squares are to be added.
std::vector<SquareTree::Run> runs_of(const ShardLayout::Part& part, bool is_complex) {
  if (part.size() == 0) {
    return {};
  }
  const std::int64_t numbers = is_complex ? 2 : 1;  // in an element
  return SquareTree::runs_of(part.begin * numbers / kNormBlock,
                             (part.end * numbers + kNormBlock - 1) / kNormBlock);
}

/// Returns the bucket of each parameter. One that does not train, or that is complete in no
/// bucket's chunks, is in the first.
std::vector<std::size_t> buckets_of_parameters(const StageProgram& stage,
                                               const std::vector<BucketCut>& cuts) {
  const std::vector<int> completing = completing_chunks(stage);
  std::vector<std::size_t> buckets;
  std::size_t trained = 0;
  for (const StageParameter& parameter : stage.parameters) {
    const int chunk = parameter.trained ? completing[trained++] : -1;
    const auto found =
        std::ranges::find_if(cuts, [&](const BucketCut& cut) { return cut.chunks.has(chunk); });
    buckets.push_back(found == cuts.end() ? 0 : static_cast<std::size_t>(found - cuts.begin()));
  }
  return buckets;
}

}  // namespace

StageBuckets::StageBuckets(const StageProgram& stage,
                           const Optimizer& optimizer,
                           const BucketOptions& options,
                           const std::vector<BucketCut>& cuts)
    : optimizer_(optimizer),
      state_names_(state_names(optimizer)),
      cuts_(cuts.empty() ? std::vector<BucketCut>(1) : cuts) {
  const at::NoGradGuard no_grad;
  const auto rule = [&](const StageParameter& parameter) {
    const auto dimensions = static_cast<std::int64_t>(stage.at(parameter.value).sizes.size());
    return rule_of(options.groups, options.decay_on, optimizer, parameter.name, dimensions);
  };
  const std::vector<std::size_t> bucket_of = buckets_of_parameters(stage, cuts);
  std::vector<BucketBuffers> buffers;
  for (const BucketCut& cut : cuts_) {
    buffers.emplace_back(state_names_.size(), options, cut.shards);
  }
  for (std::size_t p = 0; p < stage.parameters.size(); ++p) {
    const StageParameter& parameter = stage.parameters[p];
    const Value& facts = stage.at(parameter.value);
    BucketBuffers& mine = buffers[bucket_of[p]];
    if (parameter.trained) {
      mine.weights.reserve(facts.dtype, elements_of(facts));
      mine.gradients.reserve(facts.dtype, elements_of(facts));
    } else {
      mine.others.reserve(facts.dtype, elements_of(facts));
    }
  }
  optimized_.resize(buffers.size());
  pieces_.resize(buffers.size());
  divided_.resize(buffers.size());
  kept_.resize(buffers.size());
  std::vector<at::Tensor> leaves;  // of the trained ones
  for (std::size_t p = 0; p < stage.parameters.size(); ++p) {
    const StageParameter& parameter = stage.parameters[p];
    const Value& facts = stage.at(parameter.value);
    const std::size_t b = bucket_of[p];
    BucketBuffers& mine = buffers[b];
    at::Tensor leaf =
        (parameter.trained ? mine.weights : mine.others).cut(facts.dtype, facts.sizes).detach();
    leaf.requires_grad_(facts.requires_grad);
    names_.push_back(parameter.name);
    parameters_.push_back(leaf);
    if (!parameter.trained) {
      continue;
    }
    const std::size_t number = trained_names_.size();
    all_.push_back(number);
    trained_names_.push_back(parameter.name);
    leaves.push_back(leaf);
    gradients_.push_back(mine.gradients.cut(facts.dtype, facts.sizes));
    gradient_edges_.push_back(torch::autograd::impl::gradient_edge(leaf));
    const bool frozen = rule(parameter).frozen;
    positions_.push_back(parameter.counted && !frozen ? std::optional(parameter.position)
                                                      : std::nullopt);
    if (frozen) {
      continue;
    }
    const auto part = [&](std::int32_t shard) {
      return mine.gradients.last_part(facts.dtype, shard);
    };
    const Piece piece{.trained = number,
                      .buffer = mine.gradients.number_of(facts.dtype),
                      .part = part(cuts_[b].shard),
                      .whole = has_all(part(cuts_[b].shard), elements_of(facts), cuts_[b].shard)};
    if (!piece.whole && parameter.counted) {
      note_divided(b, number, part);
    }
    if (!piece.whole && piece.part.size() == 0) {
      continue;
    }
    order_.emplace_back(b, optimized_[b].size());
    pieces_[b].push_back(piece);
    optimized_[b].push_back({.parameter = part_of(leaf.detach(), piece.part),
                             .gradient = part_of(gradients_.back(), piece.part),
                             .state = {},
                             .rule = rule(parameter),
                             .name = parameter.name});
  }
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    for (FlatBuffers& memory : buffers[b].states) {
      const std::vector<at::Tensor> state = like_gradients(memory, optimized_[b]);
      for (std::size_t i = 0; i < state.size(); ++i) {
        optimized_[b][i].state.push_back(state[i].fill_(initial_state_value(optimizer)));
      }
    }
    if (options.keep_gradients) {
      kept_[b] = like_gradients(buffers[b].kept, optimized_[b]);
    }
    flat_gradients_.push_back(buffers[b].gradients.all());
    flat_weights_.push_back(buffers[b].weights.all());
    try_optimizer(optimizer, optimized_[b]);
  }
  sums_ = std::make_shared<GradientSums>(gradients_, leaves);
}

/// Notes a parameter if several shards have it.
template <class PartOf>
void StageBuckets::note_divided(std::size_t bucket, std::size_t trained, const PartOf& part) {
  Divided divided{.trained = trained, .parts = {}};
  std::ptrdiff_t owners = 0;
  for (std::int32_t shard = 0; shard < cuts_[bucket].shards; ++shard) {
    divided.parts.push_back(part(shard));
    owners += divided.parts.back().size() > 0 ? 1 : 0;
  }
  if (owners > 1) {
    divided_[bucket].push_back(std::move(divided));
  }
}

std::vector<SquaredNorm> StageBuckets::squared_norms(double weight, bool whole) const {
  std::vector<SquaredNorm> norms;
  std::vector<at::Tensor> gradients;
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    for (std::size_t i = 0; (whole || has_shards(b)) && i < pieces_[b].size(); ++i) {
      const Piece& piece = pieces_[b][i];
      if (positions_[piece.trained] && piece.whole) {
        norms.push_back({*positions_[piece.trained], 0.0});
        gradients.push_back(optimized_[b][i].gradient);
      }
    }
  }
  const std::vector<double> found = squared_norms_of_means(gradients, weight);
  for (std::size_t i = 0; i < norms.size(); ++i) {
    norms[i].value = found[i];
  }
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    for (const Divided& divided : divided_[b]) {
      if (divided.parts[static_cast<std::size_t>(cuts_[b].shard)].begin == 0 &&
          divided.parts[static_cast<std::size_t>(cuts_[b].shard)].size() > 0) {
        norms.push_back({*positions_[divided.trained],
                         squared_norm_of_mean(
                             divided.squares, gradients_[divided.trained].scalar_type(), weight)});
      }
    }
  }
  return norms;
}

at::Tensor StageBuckets::divided_squares(std::size_t bucket) const {
  const std::vector<Divided>& all = divided_[bucket];
  const std::int64_t width = runs_of_a_part(all);
  at::Tensor squares = at::zeros({std::ssize(all) * width}, at::kDouble);
  double* const out = squares.mutable_data_ptr<double>();
  for (std::size_t d = 0; d < all.size(); ++d) {
    const auto piece = std::ranges::find(pieces_[bucket], all[d].trained, &Piece::trained);
    if (piece == pieces_[bucket].end()) {
      continue;
    }
    const auto number = static_cast<std::size_t>(piece - pieces_[bucket].begin());
    const SquareTree tree = squares_of(optimized_[bucket][number].gradient, piece->part.begin);
    for (std::size_t r = 0; r < tree.runs().size(); ++r) {
      out[d * static_cast<std::size_t>(width) + r] = tree.runs()[r].sum;
    }
  }
  return squares;
}

void StageBuckets::take_divided_squares(std::size_t bucket, const at::Tensor& of_shards) {
  std::vector<Divided>& all = divided_[bucket];
  const auto width = static_cast<std::size_t>(runs_of_a_part(all));
  SC_CHECK(static_cast<std::size_t>(of_shards.numel()) ==
               static_cast<std::size_t>(cuts_[bucket].shards) * all.size() * width,
           "every shard sends as many squares");
  const double* const in = of_shards.const_data_ptr<double>();
  for (std::size_t d = 0; d < all.size(); ++d) {
    SquareTree tree;
    for (std::size_t shard = 0; shard < all[d].parts.size(); ++shard) {
      const std::vector<SquareTree::Run> runs =
          runs_of(all[d].parts[shard], gradients_[all[d].trained].is_complex());
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const double sum = in[(shard * all.size() + d) * width + r];
        tree.add({runs[r].level, runs[r].index, sum});
      }
    }
    all[d].squares = tree.total();
  }
}

std::int64_t StageBuckets::runs_of_a_part(const std::vector<Divided>& all) const {
  std::int64_t most = 0;
  for (const Divided& divided : all) {
    for (const ShardLayout::Part& part : divided.parts) {
      most = std::max(most, std::ssize(runs_of(part, gradients_[divided.trained].is_complex())));
    }
  }
  return most;
}

void StageBuckets::take_share(std::size_t bucket, const std::vector<at::Tensor>& sums) {
  for (std::size_t i = 0; i < pieces_[bucket].size(); ++i) {
    const Piece& piece = pieces_[bucket][i];
    OptimizedParameter& optimized = optimized_[bucket][i];
    optimized.gradient = sums[piece.buffer]
                             .narrow(0, piece.part.at, piece.part.size())
                             .view(optimized.parameter.sizes());
  }
}

std::vector<at::Tensor> StageBuckets::own_weights(std::size_t bucket) const {
  const BucketCut& cut = cuts_[bucket];
  std::vector<at::Tensor> own;
  for (const at::Tensor& weights : flat_weights_[bucket]) {
    const std::int64_t size = weights.numel() / cut.shards;
    own.push_back(weights.narrow(0, cut.shard * size, size));
  }
  return own;
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
  drop_share(bucket);
}

void StageBuckets::drop_share(std::size_t bucket) {
  for (std::size_t i = 0; has_shards(bucket) && i < pieces_[bucket].size(); ++i) {
    const Piece& piece = pieces_[bucket][i];
    optimized_[bucket][i].gradient = part_of(gradients_[piece.trained], piece.part);
  }
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
      result.push_back({state_name(state_names_[s] + ":", name_of(bucket, i)), p.state[s]});
    }
  }
  return result;
}

std::vector<NamedTensor> StageBuckets::gradients() const {
  std::vector<NamedTensor> result;
  for (const auto& [bucket, i] : order_) {
    const OptimizedParameter& p = optimized_[bucket][i];
    result.push_back({name_of(bucket, i), kept_[bucket].empty() ? p.gradient : kept_[bucket][i]});
  }
  return result;
}

at::Tensor StageBuckets::gradient_sum(std::string_view parameter) const {
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    const auto found = std::ranges::find(optimized_[b], parameter, &OptimizedParameter::name);
    if (found != optimized_[b].end()) {
      const auto i = static_cast<std::size_t>(found - optimized_[b].begin());
      return pieces_[b][i].whole ? found->gradient : at::Tensor();
    }
  }
  return {};
}

/// Returns the parameter's name, with the range of its elements if the bucket has not all.
std::string StageBuckets::name_of(std::size_t bucket, std::size_t i) const {
  const Piece& piece = pieces_[bucket][i];
  const std::string& name = optimized_[bucket][i].name;
  return piece.whole ? name : share_name(name, piece.part.begin, piece.part.end);
}

at::Tensor StageBuckets::gradient(std::string_view parameter) const {
  const auto found = std::ranges::find(trained_names_, parameter);
  SC_CHECK(found != trained_names_.end(), "a tied parameter trains");
  return gradients_[static_cast<std::size_t>(found - trained_names_.begin())];
}

}  // namespace stagecraft
