#include "stagecraft/actors/executor/stage/stage_buckets.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>
#include <variant>

#include <ATen/ScalarOps.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/div.h>
#include <ATen/ops/view_as_real.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/actors/executor/optimizer/master_weights.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/gradient_norm.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/half_type.h"

namespace stagecraft {
namespace {

FlatMemory lent_memory_of(const BucketOptions& options) {
  return options.lent_memory ? options.lent_memory : memory_of(options.device);
}

/// The buffers of one bucket. Weights of trained parameters lie as their gradients do.
struct BucketBuffers {
  BucketBuffers(std::size_t state_tensors, const BucketOptions& options, const BucketCut& cut)
      : gradients(cut.in_rounds() ? no_memory() : lent_memory_of(options), cut.shards),
        weights(cut.lends_weights() ? FlatBuffers(no_memory(), cut.shards)
                : cut.shards > 1    ? FlatBuffers(lent_memory_of(options), cut.shards)
                                    : FlatBuffers(memory_of(options.device))),
        others(memory_of(options.device)),
        kept(others),
        masters(others),
        averages(others),
        states(state_tensors, others) {}

  FlatBuffers gradients, weights;
  FlatBuffers others;  // weights that do not train
  FlatBuffers kept, masters, averages;
  std::vector<FlatBuffers> states;
};

/// Returns the sizes that a bucket has of a parameter.
std::vector<std::int64_t> sizes_in(const BucketCut& cut, const Value& whole) {
  std::vector<std::int64_t> sizes(whole.sizes.begin(), whole.sizes.end());
  if (cut.is_divided()) {
    sizes.at(0) /= cut.parts;
  }
  return sizes;
}

/// Returns the parts of a divided parameter as shards that begin at whole blocks (GN-1). If the
/// parts do not, the norm differs from that of one rank by rounding.
std::vector<ShardLayout::Part> in_blocks(std::int32_t parts, std::int64_t elements) {
  const std::int64_t stride = (elements + kNormBlock - 1) / kNormBlock * kNormBlock;
  std::vector<ShardLayout::Part> made;
  for (std::int32_t rank = 0; rank < parts; ++rank) {
    made.push_back({.begin = rank * stride, .end = rank * stride + elements});
  }
  return made;
}

/// Returns whether a shard has all elements of a parameter. The first one has those without any.
bool has_all(const ShardLayout::Part& part, std::int64_t elements, std::int32_t shard) {
  return part.size() == elements && (elements > 0 || shard == 0);
}

/// Returns the elements of a part of a parameter, in one dimension if it is not the whole.
at::Tensor part_of(const at::Tensor& whole, const ShardLayout::Part& part) {
  return part.size() == whole.numel() ? whole : whole.view(-1).narrow(0, part.begin, part.size());
}

/// Returns tensors in the shapes of the gradients, of the types of `like`.
template <class Like>
std::vector<at::Tensor> tensors_like(const Like& like,
                                     FlatBuffers& memory,
                                     const std::vector<OptimizedParameter>& of) {
  for (const OptimizedParameter& p : of) {
    memory.reserve({.dtype = std::invoke(like, p).scalar_type()}, p.gradient.numel());
  }
  std::vector<at::Tensor> made;
  for (const OptimizedParameter& p : of) {
    made.push_back(memory.cut({.dtype = std::invoke(like, p).scalar_type()}, p.gradient.sizes()));
  }
  return made;
}

/// Gives the parameters of half types masters.
void add_masters(FlatBuffers& memory, std::vector<OptimizedParameter>& to) {
  std::vector<OptimizedParameter*> halves;
  for (OptimizedParameter& p : to) {
    if (is_half_type(p.parameter.scalar_type())) {
      halves.push_back(&p);
      memory.reserve({.dtype = at::kFloat}, p.gradient.numel());
    }
  }
  for (OptimizedParameter* p : halves) {
    p->master = memory.cut({.dtype = at::kFloat}, p->gradient.sizes());
  }
}

/// Errors: UsageArgument for a type whose averages would stand still.
void require_fine_enough(const std::vector<OptimizedParameter>& parameters) {
  for (const OptimizedParameter& p : parameters) {
    if (is_half_type(p.updated().scalar_type())) {
      throw Error(Errc::UsageArgument,
                  fmt::format("the average of {} would round to what it was, as its type is {}: "
                              "set {}, or keep weights in Float and compute under autocast, or "
                              "leave average out",
                              p.name,
                              at::toString(p.parameter.scalar_type()),
                              kOption))
          .about("master_weights");
    }
  }
}

/// Divides gradients by a part of the divisor that float can hold. Returns the rest. A norm may
/// exceed float by far, and operators round a divisor to it.
double divide_by_part(const std::vector<OptimizedParameter>& parameters, double divisor) {
  if (divisor <= std::numeric_limits<float>::max()) {
    return divisor;
  }
  const double part = std::sqrt(divisor);
  for (const OptimizedParameter& p : parameters) {
    p.gradient.div_(part);
  }
  return part;
}

/// Scales gradients to the applied ones in a pass of their own.
void limit_gradients(const std::vector<OptimizedParameter>& parameters,
                     double divisor,
                     double most) {
  for (const OptimizedParameter& p : parameters) {
    p.gradient.div_(divisor);
    const at::Tensor reals = p.gradient.is_complex() ? at::view_as_real(p.gradient) : p.gradient;
    reals.clamp_(-most, most);
  }
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
      average_(options.average),
      state_names_(state_names(optimizer)),
      cuts_(cuts.empty() ? std::vector<BucketCut>(1) : cuts) {
  const at::NoGradGuard no_grad;
  const auto rule = [&](const StageParameter& parameter) {
    const auto dimensions = static_cast<std::int64_t>(stage.at(parameter.value).sizes.size());
    return rule_of(options.groups, options.decay_on, optimizer, parameter.name, dimensions);
  };
  const std::vector<std::size_t> bucket_of = buckets_of_parameters(stage, cuts);
  const auto sizes_of = [&](std::size_t p) {  // one that does not train is never divided
    const StageParameter& parameter = stage.parameters[p];
    return sizes_in(parameter.trained ? cuts_[bucket_of[p]] : BucketCut(),
                    stage.at(parameter.value));
  };
  std::vector<BucketBuffers> buffers;
  for (const BucketCut& cut : cuts_) {
    buffers.emplace_back(state_names_.size(), options, cut);
  }
  const auto kind_of = [&](std::size_t p) {
    const StageParameter& parameter = stage.parameters[p];
    const bool alone = parameter.trained && cuts_[bucket_of[p]].lies_alone(parameter.name);
    return FlatKind{.dtype = stage.at(parameter.value).dtype,
                    .alone = alone ? parameter.name : std::string()};
  };
  for (std::size_t p = 0; p < stage.parameters.size(); ++p) {
    const StageParameter& parameter = stage.parameters[p];
    BucketBuffers& mine = buffers[bucket_of[p]];
    const std::int64_t elements = c10::multiply_integers(sizes_of(p));
    if (parameter.trained) {
      mine.weights.reserve(kind_of(p), elements);
      mine.gradients.reserve(kind_of(p), elements);
    } else {
      mine.others.reserve(kind_of(p), elements);
    }
  }
  optimized_.resize(buffers.size());
  pieces_.resize(buffers.size());
  divided_.resize(buffers.size());
  members_.resize(buffers.size());
  kept_.resize(buffers.size());
  averages_.resize(buffers.size());
  flat_weights_.resize(buffers.size());
  own_.resize(buffers.size());
  lent_.resize(buffers.size());
  std::vector<at::Tensor> leaves;  // of the trained ones
  for (std::size_t p = 0; p < stage.parameters.size(); ++p) {
    const StageParameter& parameter = stage.parameters[p];
    const Value& facts = stage.at(parameter.value);
    const std::size_t b = bucket_of[p];
    BucketBuffers& mine = buffers[b];
    const std::vector<std::int64_t> sizes = sizes_of(p);
    const std::int64_t elements = c10::multiply_integers(sizes);
    const FlatKind kind = kind_of(p);
    at::Tensor leaf = (parameter.trained ? mine.weights : mine.others).cut(kind, sizes).detach();
    leaf.requires_grad_(facts.requires_grad);
    names_.push_back(parameter.name);
    parameters_.push_back(leaf);
    whole_.push_back(leaf);
    const std::size_t number = trained_names_.size();
    trained_of_.push_back(parameter.trained ? std::optional(number) : std::nullopt);
    if (!parameter.trained) {
      continue;
    }
    all_.push_back(number);
    members_[b].push_back(number);
    bucket_of_.push_back(b);
    trained_names_.push_back(parameter.name);
    leaves.push_back(leaf);
    if (is_divided(b)) {
      make_whole(p, facts, options.device);
      own_[b].push_back(leaf.detach().view(-1));
      lent_[b].emplace_back(flat_weights_[b].back(), unset_memory_of(options.device));
    }
    gradients_.push_back(mine.gradients.cut(kind, sizes));
    gradient_edges_.push_back(torch::autograd::impl::gradient_edge(leaf));
    const bool frozen = rule(parameter).frozen;
    groups_.push_back(rule(parameter).group);
    positions_.push_back(parameter.counted && !frozen ? std::optional(parameter.position)
                                                      : std::nullopt);
    const auto part = [&](std::int32_t shard) { return mine.gradients.last_part(kind, shard); };
    Piece piece{.trained = number,
                .buffer = mine.gradients.number_of(kind),
                .part = part(cuts_[b].shard),
                .whole = !is_divided(b) && has_all(part(cuts_[b].shard), elements, cuts_[b].shard),
                .gradient = {}};
    own_parts_.push_back(piece);
    if (frozen) {
      continue;
    }
    if (!piece.whole && parameter.counted) {
      std::vector<ShardLayout::Part> parts;
      for (std::int32_t shard = 0; shard < cuts_[b].shards; ++shard) {
        parts.push_back(part(shard));
      }
      divided_[b].add(number,
                      gradients_.back().is_complex(),
                      is_divided(b) ? in_blocks(cuts_[b].parts, elements) : parts);
    }
    if (!piece.whole && piece.part.size() == 0) {
      continue;
    }
    piece.gradient = part_of(gradients_.back(), piece.part);
    order_.emplace_back(b, optimized_[b].size());
    pieces_[b].push_back(piece);
    optimized_[b].push_back({.parameter = part_of(leaf.detach(), piece.part),
                             .gradient = piece.gradient,
                             .state = {},
                             .rule = rule(parameter),
                             .name = parameter.name});
  }
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (options.master_weights) {
      add_masters(buffers[b].masters, optimized_[b]);
    }
    for (FlatBuffers& memory : buffers[b].states) {
      const std::vector<at::Tensor> state =
          tensors_like(&OptimizedParameter::updated, memory, optimized_[b]);
      for (std::size_t i = 0; i < state.size(); ++i) {
        optimized_[b][i].state.push_back(state[i].fill_(initial_state_value(optimizer)));
      }
    }
    if (options.keep_gradients) {
      kept_[b] = tensors_like(&OptimizedParameter::gradient, buffers[b].kept, optimized_[b]);
    }
    if (average_) {
      require_fine_enough(optimized_[b]);
      averages_[b] = tensors_like(&OptimizedParameter::updated, buffers[b].averages, optimized_[b]);
    }
    flat_gradients_.push_back(buffers[b].gradients.all());
    leases_.emplace_back();
    for (const at::Tensor& flat : flat_gradients_[b]) {
      if (cuts_[b].in_rounds()) {
        leases_[b].emplace_back(flat, lent_memory_of(options));
      }
    }
    if (!is_divided(b)) {
      flat_weights_[b] = buffers[b].weights.all();
    }
    if (cuts_[b].lends_weights()) {
      keep_own_weights(b, options);
    }
    try_optimizer(optimizer, optimized_[b]);
  }
  shares_.resize(buffers.size());
  sums_ = std::make_shared<GradientSums>(gradients_, leaves);
}

/// Keeps BU-6.
void StageBuckets::keep_own_weights(std::size_t bucket, const BucketOptions& options) {
  for (at::Tensor& flat : flat_weights_[bucket]) {
    flat = flat.variable_data();  // has a version of its own
    own_[bucket].push_back(
        lent_memory_of(options)(flat.numel() / cuts_[bucket].shards, flat.scalar_type()));
    lent_[bucket].emplace_back(flat, unset_memory_of(options.device));
  }
  for (std::size_t i = 0; i < pieces_[bucket].size(); ++i) {
    const Piece& piece = pieces_[bucket][i];
    at::Tensor& parameter = optimized_[bucket][i].parameter;
    parameter = own_[bucket][piece.buffer]
                    .narrow(0, piece.part.at, piece.part.size())
                    .view(parameter.sizes());
  }
}

/// Keeps BU-7.
void StageBuckets::make_whole(std::size_t parameter,
                              const Value& facts,
                              const c10::Device& device) {
  const std::size_t bucket = bucket_of_.back();
  const at::Tensor flat = no_memory()(c10::multiply_integers(facts.sizes), facts.dtype);
  SC_CHECK(device.is_cpu(), "ranks divide weights on the CPU only");
  flat_weights_[bucket].push_back(flat);
  whole_[parameter] = flat.view(facts.sizes);
}

void StageBuckets::hold_weights(std::size_t bucket) const {
  std::ranges::for_each(lent_[bucket], &FlatLease::take);
}

void StageBuckets::release_weights(std::size_t bucket) const {
  std::ranges::for_each(lent_[bucket], &FlatLease::give_back);
}

bool StageBuckets::lends_any() const {
  return std::ranges::any_of(
      cuts_, [](const BucketCut& cut) { return cut.lends_weights() || cut.is_divided(); });
}

bool StageBuckets::divides_chunk(std::int32_t chunk) const {
  return std::ranges::any_of(
      cuts_, [&](const BucketCut& cut) { return cut.is_divided() && cut.chunks.has(chunk); });
}

void StageBuckets::begin_step() {
  sums_->begin();
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    drop_share(b);
  }
}

void StageBuckets::hold(const std::vector<std::size_t>& trained) const {
  for (const std::size_t number : trained) {
    hold_gradients(bucket_of_[number]);
  }
}

void StageBuckets::hold_gradients(std::size_t bucket) const {
  std::ranges::for_each(leases_[bucket], &FlatLease::take);
}

std::vector<at::Tensor> StageBuckets::lendable_gradients(std::size_t bucket) const {
  std::vector<at::Tensor> gradients = flat_gradients_[bucket];
  for (std::size_t i = 0; i < leases_[bucket].size(); ++i) {
    gradients[i] = leases_[bucket][i].memory();
  }
  return gradients;
}

std::vector<SquaredNorm> StageBuckets::squared_norms(double weight,
                                                     bool whole,
                                                     const UpdateNumbers& numbers,
                                                     double most) const {
  const auto trains = [&](std::size_t number) { return numbers.of(groups_[number]) > 0; };
  const bool any_size = !keeps_squares(optimizer_);
  const auto checked = [&](double squared, at::ScalarType type) {  // keeps BU-9
    const double largest = largest_of(type);
    return any_size || squared <= largest || most * most <= largest
               ? squared
               : std::numeric_limits<double>::infinity();
  };
  std::vector<SquaredNorm> norms;
  std::vector<at::Tensor> gradients;
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    for (std::size_t i = 0; (whole || has_shards(b)) && i < pieces_[b].size(); ++i) {
      const Piece& piece = pieces_[b][i];
      if (positions_[piece.trained] && piece.whole && trains(piece.trained)) {
        norms.push_back({*positions_[piece.trained], 0.0});
        gradients.push_back(optimized_[b][i].gradient);
      }
    }
  }
  const std::vector<double> found = squared_norms_of_means(gradients, weight);
  for (std::size_t i = 0; i < norms.size(); ++i) {
    norms[i].value = checked(found[i], gradients[i].scalar_type());
  }
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    if (cuts_[b].copy > 0) {
      continue;  // the first copy of the part counts
    }
    divided_[b].for_each_first(own_number(b), [&](std::size_t number, double squares) {
      if (trains(number)) {
        norms.push_back(
            {*positions_[number],
             checked(squared_norm_of_mean(squares, weight), gradients_[number].scalar_type())});
      }
    });
  }
  return norms;
}

at::Tensor StageBuckets::divided_squares(std::size_t bucket) const {
  return divided_[bucket].of_shard(own_number(bucket), [&](std::size_t number) {
    const auto piece = std::ranges::find(pieces_[bucket], number, &Piece::trained);
    return optimized_[bucket][static_cast<std::size_t>(piece - pieces_[bucket].begin())].gradient;
  });
}

void StageBuckets::take_divided_squares(std::size_t bucket, const at::Tensor& of_shards) {
  divided_[bucket].take(of_shards);
}

void StageBuckets::take_share(std::size_t bucket, const std::vector<at::Tensor>& sums) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor>& share = shares_[bucket];
  for (std::size_t i = 0; i < share.size(); ++i) {
    share[i].add_(sums[i]);
  }
  if (share.empty()) {
    share = sums;
  }
  if (cuts_[bucket].in_rounds()) {  // keeps BU-5
    sums_->begin(members_[bucket]);
    for (const FlatLease& lease : leases_[bucket]) {
      lease.give_back();
    }
  }
  for (std::size_t i = 0; i < pieces_[bucket].size(); ++i) {
    const Piece& piece = pieces_[bucket][i];
    OptimizedParameter& optimized = optimized_[bucket][i];
    optimized.gradient = share[piece.buffer]
                             .narrow(0, piece.part.at, piece.part.size())
                             .view(optimized.parameter.sizes());
  }
}

std::vector<at::Tensor> StageBuckets::own_weights(std::size_t bucket) const {
  const BucketCut& cut = cuts_[bucket];
  if (cut.lends_weights() || cut.is_divided()) {
    return own_[bucket];
  }
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
                          const UpdateNumbers& numbers) {
  const at::NoGradGuard no_grad;
  keep_gradients(bucket, scale.weight);
  const bool whole = std::holds_alternative<CustomOptimizer>(optimizer_);
  update_through_masters(
      optimized_[bucket], numbers, whole, [&](std::vector<OptimizedParameter>& parameters) {
        double divisor = divide_by_part(parameters, scale.weight / scale.clip);
        if (scale.most) {
          limit_gradients(parameters, std::exchange(divisor, 1.0), *scale.most);
        }
        apply(optimizer_, learning_rate, numbers, parameters, divisor);
      });
  follow_weights(bucket, numbers);
  drop_share(bucket);
}

void StageBuckets::follow_weights(std::size_t bucket, const UpdateNumbers& numbers) {
  for (std::size_t i = 0; i < averages_[bucket].size(); ++i) {
    const OptimizedParameter& p = optimized_[bucket][i];
    if (numbers.of(p.rule.group) > 0) {
      averages_[bucket][i].mul_(*average_).add_(p.updated().mul(1.0 - *average_));
    }
  }
}

void StageBuckets::drop_share(std::size_t bucket) {
  shares_[bucket].clear();
  for (std::size_t i = 0; has_shards(bucket) && i < pieces_[bucket].size(); ++i) {
    optimized_[bucket][i].gradient = pieces_[bucket][i].gradient;
  }
}

void StageBuckets::update(double learning_rate,
                          const GradientScale& scale,
                          const UpdateNumbers& numbers) {
  for (std::size_t b = 0; b < optimized_.size(); ++b) {
    update(b, learning_rate, scale, numbers);
  }
}

std::vector<NamedTensor> StageBuckets::state() const {
  std::vector<NamedTensor> result;
  append_weights(result);
  for (std::size_t s = 0; s < state_names_.size(); ++s) {
    for (const auto& [bucket, i] : order_) {
      const OptimizedParameter& p = optimized_[bucket][i];
      result.push_back(
          {state_name(state_names_[s] + ":", name_of(bucket, i)), as_share(bucket, p.state[s])});
    }
  }
  for (const auto& [bucket, i] : order_) {
    if (const at::Tensor& master = optimized_[bucket][i].master; master.defined()) {
      result.push_back({state_name(kMaster, name_of(bucket, i)), as_share(bucket, master)});
    }
  }
  for (const auto& [bucket, i] : order_) {
    if (average_) {
      result.push_back(
          {state_name(kAverage, name_of(bucket, i)), as_share(bucket, averages_[bucket][i])});
    }
  }
  return result;
}

void StageBuckets::follow_loaded(const std::set<std::string>& loaded) {
  const at::NoGradGuard no_grad;
  for (const auto& [bucket, i] : order_) {
    const OptimizedParameter& p = optimized_[bucket][i];
    const std::string name = name_of(bucket, i);  // a bucket that lends no weights has them whole
    if (!loaded.contains(state_name(kWeight, name)) &&
        !loaded.contains(state_name(kWeight, p.name))) {
      continue;
    }
    if (p.master.defined() && !loaded.contains(state_name(kMaster, name))) {
      p.master.copy_(p.parameter);
    }
    if (average_ && !loaded.contains(state_name(kAverage, name))) {
      averages_[bucket][i].copy_(p.updated());
    }
  }
}

void StageBuckets::append_weights(std::vector<NamedTensor>& all) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::optional<std::size_t> number = trained_of_[i];
    if (number && is_divided(bucket_of_[*number])) {
      const std::string name = name_of_part(bucket_of_[*number], names_[i], parameters_[i].numel());
      all.push_back({state_name(kWeight, name), parameters_[i].detach().view(-1)});
      continue;
    }
    if (!number || !lends_weights(bucket_of_[*number])) {
      all.push_back({state_name(kWeight, names_[i]), parameters_[i].detach()});
      continue;
    }
    const auto& [trained, buffer, part, whole, gradient] = own_parts_[*number];
    if (!whole && part.size() == 0) {
      continue;
    }
    const at::Tensor own = own_[bucket_of_[*number]][buffer].narrow(0, part.at, part.size());
    all.push_back(
        whole ? NamedTensor{state_name(kWeight, names_[i]), own.view(parameters_[i].sizes())}
              : NamedTensor{state_name(kWeight, share_name(names_[i], part.begin, part.end)), own});
  }
}

std::vector<NamedTensor> StageBuckets::gradients() const {
  std::vector<NamedTensor> result;
  for (const auto& [bucket, i] : order_) {
    const OptimizedParameter& p = optimized_[bucket][i];
    if (!kept_[bucket].empty()) {
      result.push_back({name_of(bucket, i), as_share(bucket, kept_[bucket][i])});
    } else if (!cuts_[bucket].in_rounds()) {  // else there is no memory (BU-5)
      result.push_back({name_of(bucket, i), as_share(bucket, p.gradient)});
    }
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
  return piece.whole          ? name
         : is_divided(bucket) ? name_of_part(bucket, name, optimized_[bucket][i].parameter.numel())
                              : share_name(name, piece.part.begin, piece.part.end);
}

/// Returns the name of a part of a parameter with so many elements in a divided bucket.
std::string StageBuckets::name_of_part(std::size_t bucket,
                                       const std::string& name,
                                       std::int64_t elements) const {
  const std::int64_t begin = cuts_[bucket].part * elements;
  return share_name(name, begin, begin + elements);
}

at::Tensor StageBuckets::gradient(std::string_view parameter) const {
  const auto found = std::ranges::find(trained_names_, parameter);
  SC_CHECK(found != trained_names_.end(), "a tied parameter trains");
  const auto number = static_cast<std::size_t>(found - trained_names_.begin());
  const std::size_t bucket = bucket_of_[number];
  return cuts_[bucket].lies_alone(parameter) ? shares_[bucket].at(own_parts_[number].buffer)
                                             : gradients_[number];
}

}  // namespace stagecraft
