/// These functions apply the directives of a strategy to a training DAG. apply() calls them in
/// their fixed order (STG-1). Each notes what it cannot do and continues, so that apply() reports
/// all faults at once.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/directives/match.h"
#include "stagecraft/scheduler/dag/directives/strategy_faults.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

/// Numbered is a directive with its number in the strategy.
template <class D>
struct Numbered {
  std::size_t number = 0;
  const D* directive = nullptr;
};

/// Returns the number of microbatches of the step: that of the one split of everything, or 1.
[[nodiscard]] int split(const std::vector<Numbered<SplitDirective>>& splits,
                        StrategyFaults& faults);

/// Divides the backwards that orders name in halves (PASS BI and BW) into an input half, which
/// keeps the data edges, and a weight half after it. If the stage needs no gradient of inputs, the
/// weight half does all the work.
void split_backwards(TrainingDag& dag,
                     const std::vector<Numbered<OrderDirective>>& orders,
                     StrategyFaults& faults);

/// Puts the matched nodes on their ranks.
void place(TrainingDag& dag,
           const DagMatcher& matcher,
           const std::vector<Numbered<PlaceDirective>>& places,
           StrategyFaults& faults);

/// Replaces the data edges between ranks by transfers (DG-1). Requires: place().
void add_transfers(TrainingDag& dag, const std::vector<Numbered<PlaceDirective>>& places);

/// DividedChunks holds the chunks whose weights are divided among their ranks, by stage and number,
/// each with its directive.
using DividedChunks = std::map<std::pair<StageId, int>, const ShardDirective*>;

/// Returns the chunks that shards select. Requires: add_transfers().
[[nodiscard]] DividedChunks divided_chunks(const TrainingDag& dag,
                                           const DagMatcher& matcher,
                                           const std::vector<Numbered<ShardDirective>>& shards,
                                           StrategyFaults& faults);

/// Adds the gathers of weights that buckets lend before every task that uses them, in a training
/// step and in an evaluation alike. Requires: place().
void gather_weights(TrainingDag& dag);

/// Returns the gather of a bucket's weights for a task, or after an update. Adds its stream if it
/// is new.
[[nodiscard]] DagNode gather_node(TrainingDag& dag, int number, DagNode of);

/// Sums the gradients of matched stages over their ranks, bucket by bucket, once per step. With
/// sharded gradients or parameters, each backward gives away its gradients. With sharded
/// parameters, each task gathers its weights first. A divided chunk is a bucket of its own, which
/// shares nothing and is summed only if there are fewer parts than ranks. An evaluation sums
/// nothing, and gathers the weights of the buckets that its source lends. Requires: place().
void replicate(TrainingDag& dag,
               const DagMatcher& matcher,
               const std::vector<Numbered<ReplicateDirective>>& replicates,
               const DividedChunks& divided,
               StrategyFaults& faults);

/// Keeps DG-4: pairs the copies in the schedule of the stages of ties, so that those of one tie
/// have the same shards. Returns the stages that share nothing, because the shards of one of their
/// ties would not correspond: its stages are not asked for the same, or their copies do not lie in
/// the same order. `asked`: what all copies of a stage are asked to share, by stage.
/// Requires: place().
[[nodiscard]] std::set<StageId> pair_ties(TrainingDag& dag, const std::vector<Sharing>& asked);

/// Exchanges samples around the forwards and backwards of divided chunks: once before each, and
/// once after it. Requires: replicate().
void shard(TrainingDag& dag, const DividedChunks& divided);

/// Sums gradients of tied parameters over the stages that use them, after the sums over copies and
/// before the updates. Requires: replicate().
void add_ties(TrainingDag& dag, StrategyFaults& faults);

/// Adds edges so that the groups of each order run one after the other.
void order(TrainingDag& dag,
           const DagMatcher& matcher,
           const std::vector<Numbered<OrderDirective>>& orders,
           StrategyFaults& faults);

/// Adds a vote for each rank list, after everything but its updates.
void add_votes(TrainingDag& dag);

}  // namespace stagecraft
