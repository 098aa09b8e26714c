/// StageBuckets holds one stage's parameters, gradients and optimizer state as flat buffers, bucket
/// by bucket (PlanBucket).
///
/// Parameters are leaf views into the buffers, padded to 64 bytes. So sums over copies run over
/// memory in one piece, and autograd still sees one tensor per parameter. It is confined to the
/// plan thread.
///
/// BU-1: the values of a view do not depend on its place in the buffer: bucket layout changes no
///       bit.
/// BU-2: a step copies a parameter's first gradient and adds the later ones, in the order of the
///       calls. Gradients that were taken before (GS-1) follow the same order.
/// BU-3: a frozen parameter (PG-2) has a place for its gradient, because ties and copies of the
///       stage sum it like any other. It has no optimizer state and no kept gradient.
/// BU-4: a bucket with shards has the optimizer's state of its shard alone, and updates only the
///       weights there. The caller brings the sums of its gradients (take_share), and the weights
///       that others have updated (flat_weights). Updates change the same bits as without shards.
/// BU-5: a bucket that is reduced in rounds has memory for whole gradients from the first task of a
///       round until take_share(), which adds the round to those before.
/// BU-6: a bucket that lends weights keeps those of its shard apart. It has memory for the weights
///       of all from hold_weights(), after which the caller fills it, to release_weights().
/// BU-7: a divided bucket (P-13) has a part of each parameter, like a stage with fewer experts. An
///       evaluation has the whole ones (whole_parameters) in memory as in BU-6, each in a flat
///       buffer of its own.
/// BU-8: an average follows the weights, or their masters, by an operation for each rounding, which
///       has the same bits in every part of a parameter.
/// BU-9: an optimizer that keeps squares gets no gradient whose squared norm exceeds the arithmetic
///       of its type: it would never recover from it. Other gradients may have any finite size.
/// BU-10: in a bucket with shards each tied parameter is a flat buffer of its own, so that its
///       shards are the same in all its stages, whatever else these train.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/executor/optimizer/parameter_groups.h"
#include "stagecraft/actors/executor/setup/bucket_cut.h"
#include "stagecraft/actors/executor/stage/divided_squares.h"
#include "stagecraft/actors/executor/stage/flat_buffers.h"
#include "stagecraft/actors/executor/stage/gradient_sums.h"
#include "stagecraft/actors/executor/stage/shard_layout.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/compiler/stage/stage_program.h"
#include "stagecraft/futures/collective/vote.h"

namespace stagecraft {

/// BucketOptions holds the options of a trainer or a reference that a bucket uses.
struct BucketOptions {
  std::vector<ParameterGroup> groups;
  DecayOn decay_on = DecayOn::All;
  std::optional<double> average;  ///< TrainerOptions::average
  bool master_weights = false;    ///< likewise
  bool keep_gradients = false;
  c10::Device device = kProgramDevice;  ///< of all tensors
  FlatMemory lent_memory;  ///< of gradients, and of weights in shards; empty: on `device`
};

template <class Options>
[[nodiscard]] BucketOptions bucket_options(const Options& options) {
  return {.groups = options.groups,
          .decay_on = options.decay_on,
          .average = options.average,
          .master_weights = options.master_weights,
          .keep_gradients = options.keep_gradients,
          .lent_memory = {}};
}

/// GradientScale says how an update scales the sums of gradients.
struct GradientScale {
  double weight = 1.0;  ///< total weight of the microbatches: the mean is the sum divided by it
  double clip = 1.0;    ///< clipping multiplies the mean by it
  /// Limits the size of each element of the result. A complex number has two of them.
  std::optional<double> most;
};

class StageBuckets {
 public:
  /// Makes buckets with weights of value 0, which the caller loads, and the optimizer state of the
  /// first step. `cuts`: one for each bucket; if empty, one bucket holds the stage.
  StageBuckets(const StageProgram& stage,
               const Optimizer& optimizer,
               const BucketOptions& options = {},
               const std::vector<BucketCut>& cuts = {});

  /// Returns the leaves to which autograd differentiates, in the order of StageProgram::parameters.
  [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
  /// Returns the parameters as the model has them: also those of divided buckets.
  [[nodiscard]] const std::vector<at::Tensor>& whole_parameters() const { return whole_; }
  /// Returns the edges at which gradients of the trained parameters arrive, in their order.
  [[nodiscard]] const std::vector<torch::autograd::Edge>& gradient_edges() const {
    return gradient_edges_;
  }

  /// Forgets the gradients of the last step.
  void begin_step();

  /// Adds one microbatch's gradients of these parameters (by number) times its weight. `gradients`:
  /// one per gradient edge. An undefined gradient counts as zero, unless it was taken.
  void accumulate(const std::vector<std::size_t>& which,
                  const std::vector<at::Tensor>& gradients,
                  double weight = 1.0) {
    hold(which);
    sums_->add(which, gradients, weight);
  }
  /// Adds the gradients of all trained parameters.
  void accumulate(const std::vector<at::Tensor>& gradients, double weight = 1.0) {
    accumulate(all_, gradients, weight);
  }

  /// While the result lives, backwards of one microbatch hand the gradients of these parameters (by
  /// number) to the sums. Without a weight they do not.
  /// Requires: accumulate() comes next, for that microbatch and with that weight.
  [[nodiscard]] GradientSums::Taking take(const std::vector<std::size_t>& trained,
                                          std::optional<double> weight) const {
    if (weight) {
      hold(trained);
    }
    return {*sums_, trained, weight};
  }

  /// Returns the squared norm of the mean over microbatches for each counted parameter that is not
  /// frozen in the update. `weight`: the total weight of the microbatches. Reads the sums once and
  /// does not change them. `whole`: also those of buckets without shards. A parameter that several
  /// shards have is returned with its first one; take_divided_squares() comes before. `most`: the
  /// update limits the applied gradient, or each element, to it. Infinite for a gradient whose
  /// applied square the optimizer's state could not hold (BU-9).
  [[nodiscard]] std::vector<SquaredNorm> squared_norms(
      double weight,
      bool whole = true,
      const UpdateNumbers& numbers = {},
      double most = std::numeric_limits<double>::infinity()) const;

  /// Returns this rank's part of the squares of the parameters of which several shards, or ranks
  /// that divide them, have some: a flat tensor of doubles, of one size for all; empty if there are
  /// none.
  [[nodiscard]] at::Tensor divided_squares(std::size_t bucket) const;
  /// Takes these parts of all shards, one after the other.
  void take_divided_squares(std::size_t bucket, const at::Tensor& of_shards);

  /// Keeps the mean gradients of a bucket, if they are to be kept. An update does it too.
  void keep_gradients(std::size_t bucket, double weight);
  /// Makes one optimizer update of a bucket, through masters if it has some (MWT-1). It scales the
  /// sums to the applied gradients while it reads them (OR-2), or before if elements are limited.
  void update(std::size_t bucket,
              double learning_rate,
              const GradientScale& scale,
              const UpdateNumbers& numbers);
  /// Updates all buckets.
  void update(double learning_rate, const GradientScale& scale, const UpdateNumbers& numbers);

  /// Returns the living tensors: parameters first (kWeight), then the optimizer's state, then
  /// masters and averages. Those of a shard have names of shares.
  [[nodiscard]] std::vector<NamedTensor> state() const;
  /// Lets masters and averages begin as their weights, if these were loaded and they were not.
  /// `loaded`: names of state().
  void follow_loaded(const std::set<std::string>& loaded);

  [[nodiscard]] bool has_shards(std::size_t bucket) const { return cuts_[bucket].shards > 1; }
  /// Adds the sums of the gradients of this shard, one buffer per kind, to those that it has taken
  /// for this update. The bucket keeps the buffers.
  void take_share(std::size_t bucket, const std::vector<at::Tensor>& sums);
  /// Frees them. An update does it too.
  void drop_share(std::size_t bucket);
  [[nodiscard]] bool is_divided(std::size_t bucket) const { return cuts_[bucket].is_divided(); }
  /// Returns whether a divided bucket has the parameters of the chunk.
  [[nodiscard]] bool divides_chunk(std::int32_t chunk) const;
  /// Returns the weights of this shard, one buffer per kind; those of a divided bucket, one for
  /// each trained parameter.
  [[nodiscard]] std::vector<at::Tensor> own_weights(std::size_t bucket) const;
  [[nodiscard]] bool lends_weights(std::size_t bucket) const {
    return cuts_[bucket].lends_weights();
  }
  /// Get and give back the memory of weights that a bucket lends.
  void hold_weights(std::size_t bucket) const;
  void release_weights(std::size_t bucket) const;
  /// Gets memory for a bucket's gradients, if it was given back (BU-5).
  void hold_gradients(std::size_t bucket) const;
  /// Returns whether weights of a bucket have memory for some time only.
  [[nodiscard]] bool lends_any() const;

  /// Returns the weights of all shards, one buffer per kind, or those of which a divided bucket
  /// has parts. Others may read this shard's. Writing to them does not count as a change of a
  /// parameter for autograd.
  [[nodiscard]] const std::vector<at::Tensor>& flat_weights(std::size_t bucket) const {
    return flat_weights_[bucket];
  }

  /// Returns the gradients of a bucket's trained parameters, one buffer per FlatKind.
  [[nodiscard]] const std::vector<at::Tensor>& flat_gradients(std::size_t bucket = 0) const {
    return flat_gradients_[bucket];
  }

  /// Returns the same in memory of its own, which may be lent (Transport::lend).
  /// Requires: hold_gradients().
  [[nodiscard]] std::vector<at::Tensor> lendable_gradients(std::size_t bucket) const;

  /// Returns the gradients of the updated parameters, by their names: those averaged for the last
  /// update if they are kept, otherwise the living ones, which an update averages and clips.
  [[nodiscard]] std::vector<NamedTensor> gradients() const;

  /// Returns the living gradients of the trained parameters, in their order.
  [[nodiscard]] const std::vector<at::Tensor>& living_gradients() const { return gradients_; }
  /// Returns the sum of a parameter's gradients that counts in its norm; undefined if other shards
  /// have it or a part of it. Requires: it trains.
  [[nodiscard]] at::Tensor gradient_sum(std::string_view parameter) const;
  /// Returns the living gradient of a parameter. If its bucket has shards and it is tied, returns
  /// what this shard has taken of it, in one dimension and with the padding: as many elements in
  /// each stage of the tie (BU-10). Requires: it trains.
  [[nodiscard]] at::Tensor gradient(std::string_view parameter) const;

 private:
  /// Piece is what a bucket has to update of a parameter.
  struct Piece {
    std::size_t trained = 0;  // its number
    std::size_t buffer = 0;   // of the bucket's
    ShardLayout::Part part;
    bool whole = true;
    at::Tensor gradient;  // in the buffer, whose memory may be given back
  };
  /// Gets memory for the gradients of these parameters, if it was given back (BU-5).
  void hold(const std::vector<std::size_t>& trained) const;
  [[nodiscard]] std::string name_of(std::size_t bucket, std::size_t i) const;
  [[nodiscard]] std::string name_of_part(std::size_t bucket,
                                         const std::string& name,
                                         std::int64_t elements) const;
  /// Returns the tensor as its name says: a share has one dimension.
  [[nodiscard]] at::Tensor as_share(std::size_t bucket, const at::Tensor& tensor) const {
    return is_divided(bucket) ? tensor.view(-1) : tensor;
  }
  /// Returns the number of this rank's shard or part.
  [[nodiscard]] std::int32_t own_number(std::size_t bucket) const {
    return is_divided(bucket) ? cuts_[bucket].part : cuts_[bucket].shard;
  }
  /// Moves the averages of a bucket towards its weights (BU-8).
  void follow_weights(std::size_t bucket, const UpdateNumbers& numbers);
  void keep_own_weights(std::size_t bucket, const BucketOptions& options);
  void make_whole(std::size_t parameter, const Value& facts, const c10::Device& device);
  void append_weights(std::vector<NamedTensor>& all) const;

  std::vector<std::string> names_;                      // of all parameters
  std::vector<at::Tensor> parameters_;                  // likewise
  std::vector<at::Tensor> whole_;                       // likewise
  std::vector<std::optional<std::int64_t>> positions_;  // of the trained ones, if counted here
  std::vector<std::string> trained_names_;
  std::vector<std::optional<std::size_t>> groups_;  // of the trained ones: of parameters
  std::vector<at::Tensor> gradients_;               // of the trained ones
  std::vector<std::size_t> all_;                    // their numbers
  Optimizer optimizer_;
  std::optional<double> average_;
  std::vector<std::string> state_names_;
  std::vector<BucketCut> cuts_;                             // by bucket
  std::vector<std::vector<OptimizedParameter>> optimized_;  // by bucket: all that are not frozen
  std::vector<std::vector<Piece>> pieces_;                  // like these
  std::vector<DividedSquares> divided_;                     // by bucket: of those that count
  std::vector<std::vector<at::Tensor>> kept_;               // like the gradients, or empty
  std::vector<std::vector<at::Tensor>> averages_;           // likewise
  std::vector<std::pair<std::size_t, std::size_t>> order_;  // of these, as the stage has them
  std::vector<std::vector<at::Tensor>> flat_gradients_;     // by bucket: one per kind
  std::vector<std::vector<at::Tensor>> flat_weights_;       // of the trained ones, likewise
  std::vector<std::vector<at::Tensor>> shares_;             // likewise: taken sums; or none
  std::vector<std::vector<FlatLease>> leases_;  // by bucket: of its gradients; none: it keeps them
  std::vector<std::vector<std::size_t>> members_;  // by bucket: the numbers of its trained ones
  std::vector<std::size_t> bucket_of_;             // of the trained ones
  std::vector<std::vector<at::Tensor>> own_;       // by bucket that lends weights: of its shard
  std::vector<std::vector<FlatLease>> lent_;       // likewise: of all weights
  std::vector<Piece> own_parts_;                   // of the trained ones
  std::vector<std::optional<std::size_t>> trained_of_;  // by parameter: its number
  std::vector<torch::autograd::Edge> gradient_edges_;
  std::shared_ptr<GradientSums> sums_;  // sums into the views; other shapes' buckets share it
};

}  // namespace stagecraft
