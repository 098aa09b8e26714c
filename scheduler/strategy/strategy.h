/// Strategy says how a step is distributed, as a list of directives. They split the step into
/// microbatches, place stages on ranks, make copies of stages share gradients, and order the work
/// of a rank.
///
///     Strategy{}
///         .split({}, 4)
///         .place(stage(0), {Rank(0), Rank(2)})
///         .place(stage(1), {Rank(1), Rank(3)})
///         .replicate(stage(0), {Rank(0), Rank(2)}, {.reduce_stream = "dp"})
///         .replicate(stage(1), {Rank(1), Rank(3)}, {.reduce_stream = "dp"})
///         .order({{forward(0, 0)}, {forward(0, 1)}, ...});
///
/// A user writes it in C++ or in a file (strategy_text.h), or strategy_of() makes it from a
/// schedule. apply() (dag/apply.h) turns it into a training DAG. A value.
/// STG-1: directives are applied kind by kind, in the order of Directive's alternatives. The order
///        in which they were written counts only within a kind.
/// Source: Piper, section on directives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/strategy/filter.h"
#include "stagecraft/scheduler/strategy/sharing.h"

namespace stagecraft {

/// SplitDirective splits the step into microbatches.
struct SplitDirective {
  Filter filter;  ///< everything
  std::string dimension = std::string(kMicrobatchTag);
  int parts = 1;

  friend bool operator==(const SplitDirective&, const SplitDirective&) = default;
};

/// PlaceDirective runs the matched nodes on ranks. Several ranks run them side by side, each on its
/// own samples.
struct PlaceDirective {
  Filter filter;
  std::vector<Rank> ranks;
  std::string stream;  ///< of transfers in both directions; empty: one stream for each direction

  friend bool operator==(const PlaceDirective&, const PlaceDirective&) = default;
};

/// ReplicateOptions says how copies of a stage share gradients.
struct ReplicateOptions {
  std::string reduce_stream;  ///< of the sums; empty: "reduce"
  std::string gather_stream;  ///< of the parameters; empty: "gather"
  /// The most bytes of parameters in one part of a sum. A part starts as soon as its gradients are
  /// complete. None: one part per stage.
  std::optional<std::int64_t> bucket_bytes;
  bool shard_optimizer = false;   ///< ZeRO-1
  bool shard_gradients = false;   ///< ZeRO-2
  bool shard_parameters = false;  ///< ZeRO-3

  /// Sets the level, and the usual size of buckets for rounds if there is none.
  void share(Sharing level) {
    shard_optimizer = level == Sharing::States;
    shard_gradients = level == Sharing::Gradients;
    shard_parameters = level == Sharing::Weights;
    if (level >= Sharing::Gradients && !bucket_bytes) {
      bucket_bytes = kUsualBucketBytes;
    }
  }
  /// Returns the usual options for a level.
  [[nodiscard]] static ReplicateOptions at(Sharing level) {
    ReplicateOptions options;
    options.share(level);
    return options;
  }

  /// Returns the highest level that is set.
  [[nodiscard]] Sharing sharing() const {
    return shard_parameters  ? Sharing::Weights
           : shard_gradients ? Sharing::Gradients
           : shard_optimizer ? Sharing::States
                             : Sharing::Nothing;
  }

  friend bool operator==(const ReplicateOptions&, const ReplicateOptions&) = default;
};

/// ReplicateDirective makes the ranks of the matched nodes copies that train the same weights.
struct ReplicateDirective {
  Filter filter;
  std::vector<Rank> ranks;
  ReplicateOptions options;

  friend bool operator==(const ReplicateDirective&, const ReplicateDirective&) = default;
};

/// ShardDirective divides the weights of the matched nodes among the ranks, which exchange samples
/// instead.
struct ShardDirective {
  Filter filter;
  std::vector<Rank> ranks;
  std::string stream;
  /// How many ranks divide them; 0: all. With fewer, each `parts` ranks that follow each other hold
  /// the weights once, and ranks with the same part are copies that sum its gradients; `ranks` then
  /// ascend.
  int parts = 0;

  [[nodiscard]] int part_count() const {
    return parts != 0 ? parts : static_cast<int>(ranks.size());
  }

  friend bool operator==(const ShardDirective&, const ShardDirective&) = default;
};

/// OrderDirective runs groups of nodes of the same ranks one after the other. The members of a
/// group may overlap.
struct OrderDirective {
  using Group = std::vector<Filter>;
  std::vector<Group> groups;

  friend bool operator==(const OrderDirective&, const OrderDirective&) = default;
};

/// The order of the alternatives is the order in which they are applied (STG-1).
using Directive = std::
    variant<SplitDirective, PlaceDirective, ReplicateDirective, ShardDirective, OrderDirective>;

class Strategy {
 public:
  Strategy() = default;
  /// `lines`: those of the file, from 1, of as many directives; none if it comes from no file.
  explicit Strategy(std::vector<Directive> directives, std::vector<std::size_t> lines = {})
      : directives_(std::move(directives)), lines_(std::move(lines)) {}

  Strategy& split(Filter filter, int parts);
  Strategy& place(Filter filter, std::vector<Rank> ranks, std::string stream = {});
  Strategy& replicate(Filter filter, std::vector<Rank> ranks, ReplicateOptions options = {});
  Strategy& shard(Filter filter, std::vector<Rank> ranks, std::string stream = {}, int parts = 0);
  Strategy& order(std::vector<OrderDirective::Group> groups);

  /// Returns the directives as they were written.
  [[nodiscard]] const std::vector<Directive>& directives() const { return directives_; }

  /// Returns "directive 4", counted from 1, or "directive 4 (line 7)" of a file.
  [[nodiscard]] std::string place_of(std::size_t directive) const;
  /// Returns the strategy without its directives of these kinds.
  template <class... Kinds>
  [[nodiscard]] Strategy without() const {
    Strategy kept;
    for (std::size_t i = 0; i < directives_.size(); ++i) {
      if (!(std::holds_alternative<Kinds>(directives_[i]) || ...)) {
        kept.directives_.push_back(directives_[i]);
        if (i < lines_.size()) {
          kept.lines_.push_back(lines_[i]);
        }
      }
    }
    return kept;
  }

  /// Lines do not count.
  friend bool operator==(const Strategy& a, const Strategy& b) {
    return a.directives_ == b.directives_;
  }

 private:
  std::vector<Directive> directives_;
  std::vector<std::size_t> lines_;  ///< of the first directives
};

/// Returns one more than the largest stage that a directive places by its number; 0 without one.
[[nodiscard]] int placed_stages(const Strategy& strategy);

/// The names of the alternatives, in their order.
inline constexpr std::array<std::string_view, std::variant_size_v<Directive>> kDirectiveNames{
    "split", "place", "replicate", "shard", "order"};

/// These functions make filters for strategies written by hand: `using namespace
/// stagecraft::filters;`.
namespace filters {

[[nodiscard]] Filter everything();
[[nodiscard]] Filter stage(int number);
[[nodiscard]] Filter forward(int stage, int microbatch);
[[nodiscard]] Filter backward(int stage, int microbatch);
[[nodiscard]] Filter backward_input(int stage, int microbatch);
[[nodiscard]] Filter backward_weight(int stage, int microbatch);

}  // namespace filters
}  // namespace stagecraft
