#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/dag/directives/directives.h"

namespace stagecraft {
namespace {

constexpr const char* kReduceStream = "reduce";

using Replicates = std::vector<Numbered<ReplicateDirective>>;

class Replication {
 public:
  Replication(TrainingDag& dag,
              const Replicates& replicates,
              const DividedChunks& divided,
              StrategyFaults& faults)
      : dag_(dag), replicates_(replicates), divided_(divided), faults_(faults) {
    for (const auto& chunks : dag.source.chunks) {
      directive_of_.emplace_back(chunks.size(), kNone);
      bucket_of_.emplace_back(chunks.size(), kNone);
    }
  }

  /// Notes which directive replicates which chunks.
  void take(const DagMatcher& matcher) {
    for (std::size_t r = 0; r < replicates_.size(); ++r) {
      const auto& [number, directive] = replicates_[r];
      const std::vector<int> matched = matcher.match(number, directive->filter, faults_);
      if (matched.empty()) {
        continue;
      }
      const int elsewhere = first_elsewhere(dag_, matched, directive->ranks);
      if (elsewhere != kNone) {
        faults_.note(number,
                     fmt::format("{} is placed on {}: replicate it on the ranks of its place",
                                 to_string(dag_, elsewhere),
                                 place_text(dag_, dag_.node(elsewhere).place)));
        continue;
      }
      for (const int n : matched) {
        const DagNode& node = dag_.node(n);
        int& known = directive_of_[node.stage.index()][static_cast<std::size_t>(node.chunk)];
        if (known != kNone && known != static_cast<int>(r)) {
          faults_.note(number, fmt::format("{} is replicated already", to_string(dag_, n)));
          break;
        }
        known = static_cast<int>(r);
      }
    }
    check_copies();
  }

  void apply() {
    keep_ties_whole();
    divide_buckets();
    redirect_gradients();
    gather_weights(dag_);
    gather_updated();
  }

 private:
  [[nodiscard]] bool is_divided(StageId stage, int chunk) const {
    return divided_.contains({stage, chunk});
  }
  /// Returns whether each rank has weights of the chunk that no other has.
  [[nodiscard]] bool has_one_copy(StageId stage, int chunk) const {
    const auto found = divided_.find({stage, chunk});
    return found != divided_.end() &&
           found->second->part_count() == std::ssize(found->second->ranks);
  }

  /// Returns how the chunk is replicated; null if it has no copy.
  [[nodiscard]] const ReplicateOptions* options_of(StageId stage, int chunk) const {
    static const ReplicateOptions usual;  // of copies in a schedule, which need no directive
    if (has_one_copy(stage, chunk)) {
      return nullptr;
    }
    const int r = directive_of_[stage.index()][static_cast<std::size_t>(chunk)];
    return r != kNone ? &replicates_[static_cast<std::size_t>(r)].directive->options
           : dag_.source.graph.replicas() > 1 || is_divided(stage, chunk) ? &usual
                                                                          : nullptr;
  }
  [[nodiscard]] const ReplicateOptions* options_of(const DagBucket& bucket) const {
    return options_of(bucket.stages.front(), bucket.first_chunk);
  }

  /// Notes copies of a stage in the schedule that are replicated differently, or that would reduce
  /// gradients after other tasks than their partners.
  void check_copies() {
    for (const auto& [first, second] : dag_.source.graph.replica_pairs()) {
      for (std::size_t c = 0; c < dag_.source.chunks[static_cast<std::size_t>(first)].size(); ++c) {
        const auto chunk = static_cast<int>(c);
        if (is_divided(StageId(first), chunk) || is_divided(StageId(second), chunk)) {
          faults_.note(
              fmt::format("stages {} and {} are copies of one stage in the schedule, and each row "
                          "has its own order: leave shard out",
                          first,
                          second));
          break;
        }
        if (*options_of(StageId(first), chunk) != *options_of(StageId(second), chunk)) {
          faults_.note(fmt::format(
              "stages {} and {} are copies of one stage: replicate both alike", first, second));
          break;
        }
      }
    }
  }

  /// Finds the stages that share nothing because of their ties.
  void keep_ties_whole() {
    std::vector<Sharing> asked;
    for (StageId s; s.value < dag_.source.graph.size(); ++s.value) {
      asked.push_back(asked_of(s));
    }
    whole_ = pair_ties(dag_, asked);
  }

  /// Divides each bucket: where the directive changes, and where its bytes would exceed the
  /// directive's. Counts from the last chunk, whose gradients are complete first.
  void divide_buckets() {
    std::vector<DagBucket> buckets;
    for (const DagBucket& whole : dag_.buckets) {
      std::vector<DagBucket> parts;
      const auto& chunks = dag_.source.chunks[whole.stages.front().index()];
      for (int c = static_cast<int>(chunks.size()); c-- > 0;) {
        const std::int64_t bytes = chunks[static_cast<std::size_t>(c)].parameter_bytes;
        const ReplicateOptions* options = options_of(whole.stages.front(), c);
        const bool divided = is_divided(whole.stages.front(), c);
        const bool fits = !parts.empty() && !divided && !parts.back().is_divided() &&
                          options_of(parts.back()) == options &&
                          (options == nullptr || !options->bucket_bytes ||
                           parts.back().bytes + bytes <= *options->bucket_bytes);
        if (fits) {
          parts.back().first_chunk = c;
          parts.back().chunks += 1;
          parts.back().bytes += bytes;
        } else {
          parts.push_back(
              {.stages = whole.stages,
               .first_chunk = c,
               .chunks = 1,
               .bytes = bytes,
               .parts = divided ? divided_.at({whole.stages.front(), c})->part_count() : 1});
        }
      }
      std::erase_if(parts, [](const DagBucket& part) { return part.bytes == 0; });
      for (DagBucket& part : parts) {  // nothing waits for the backward of a chunk without weights
        while (chunks[static_cast<std::size_t>(part.first_chunk)].parameter_bytes == 0) {
          ++part.first_chunk;
          --part.chunks;
        }
        if (const ReplicateOptions* options = options_of(part)) {
          part.lends = sharing_of(part.stages.front(), part.first_chunk) == Sharing::Weights;
          part.gather_stream = options->gather_stream;
        }
      }
      buckets.insert(buckets.end(), parts.rbegin(), parts.rend());
    }
    dag_.buckets = std::move(buckets);
    std::map<StageId, int> whole_update;
    for (int n = 0; n < dag_.size(); ++n) {
      if (dag_.node(n).kind == DagKind::Update) {
        whole_update[dag_.node(n).stage] = n;
      }
    }
    std::map<StageId, bool> taken;
    for (std::size_t b = 0; b < dag_.buckets.size(); ++b) {
      const DagBucket& bucket = dag_.buckets[b];
      for (const StageId stage : bucket.stages) {
        int update = whole_update.at(stage);
        if (std::exchange(taken[stage], true)) {
          const DagNode like = dag_.node(update);
          update = dag_.add(like);
        }
        dag_.node(update).bucket = static_cast<int>(b);
        update_of_[{static_cast<int>(b), stage}] = update;
        for (int c = 0; c < bucket.chunks; ++c) {
          bucket_of_[stage.index()][static_cast<std::size_t>(bucket.first_chunk + c)] =
              static_cast<int>(b);
        }
      }
    }
  }

  [[nodiscard]] int bucket_of(const DagNode& node) const {
    return bucket_of_[node.stage.index()][static_cast<std::size_t>(node.chunk)];
  }
  [[nodiscard]] int update_of(int bucket, StageId stage) const {
    return update_of_.at({bucket, stage});
  }

  /// Returns what copies of a chunk are asked to share. A stage that trains nothing shares nothing,
  /// and neither do the parts of a divided chunk.
  [[nodiscard]] Sharing asked_of(StageId stage, int chunk) const {
    const ReplicateOptions* options = options_of(stage, chunk);
    return options == nullptr || is_divided(stage, chunk) ||
                   !dag_.source.graph.needs_weight_grad(stage)
               ? Sharing::Nothing
               : options->sharing();
  }
  /// Returns what the copies of all chunks of a stage with weights are asked to share; nothing if
  /// these are several things.
  [[nodiscard]] Sharing asked_of(StageId stage) const {
    std::set<Sharing> asked;
    const auto& chunks = dag_.source.chunks[stage.index()];
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      const auto chunk = static_cast<int>(c);
      if (chunks[c].parameter_bytes > 0 && !is_divided(stage, chunk)) {
        asked.insert(asked_of(stage, chunk));
      }
    }
    return asked.size() == 1 ? *asked.begin() : Sharing::Nothing;
  }
  /// Returns what they share.
  [[nodiscard]] Sharing sharing_of(StageId stage, int chunk) const {
    return whole_.contains(stage) ? Sharing::Nothing : asked_of(stage, chunk);
  }

  /// Returns the collective that takes the gradients of a bucket on a rank list: one for the step
  /// and all copies there, or one for each microbatch if gradients are sharded.
  int reduction(int bucket, const ReplicateOptions& options, const DagNode& from) {
    const Sharing sharing = sharing_of(from.stage, from.chunk);
    const bool each = sharing >= Sharing::Gradients;
    const Microbatch microbatch = each ? from.microbatch : Microbatch(kNone);
    const auto [entry, added] = reduction_of_.try_emplace({bucket, from.place, microbatch}, kNone);
    if (added) {
      entry->second = dag_.add(
          {.kind = sharing > Sharing::Nothing ? DagKind::ReduceScatter : DagKind::AllReduce,
           .stage = from.stage,
           .chunk = dag_.buckets[static_cast<std::size_t>(bucket)].first_chunk,
           .microbatch = microbatch,
           .place = from.place,
           .stream = dag_.stream_named(options.reduce_stream.empty() ? kReduceStream
                                                                     : options.reduce_stream),
           .bucket = bucket});
    }
    const int update = update_of(bucket, from.stage);
    if (connected_.emplace(entry->second, update).second) {
      dag_.connect(entry->second, update, /*data=*/false);
    }
    return entry->second;
  }

  /// Lets gradients of replicated chunks flow to a sum, and the sum to the update. Other chunks
  /// keep their edge to the update of their bucket.
  void redirect_gradients() {
    std::vector<DagEdge> kept;
    kept.reserve(dag_.edges.size());
    const std::vector<DagEdge> before = std::move(dag_.edges);
    dag_.edges.clear();
    for (DagEdge edge : before) {
      if (dag_.node(edge.to).kind == DagKind::Update) {
        const DagNode from = dag_.node(edge.from);
        const int bucket = bucket_of(from);
        if (bucket == kNone) {
          continue;  // nothing of this chunk trains
        }
        const ReplicateOptions* options = options_of(from.stage, from.chunk);
        edge.data = options != nullptr;
        edge.to =
            options != nullptr ? reduction(bucket, *options, from) : update_of(bucket, from.stage);
      }
      kept.push_back(edge);
    }
    kept.insert(kept.end(), dag_.edges.begin(), dag_.edges.end());
    dag_.edges = std::move(kept);
  }

  /// Adds the gathers of updated parameters after the updates if only gradients or the optimizer
  /// are sharded.
  void gather_updated() {
    std::map<std::pair<int, int>, StageId> stage_at;  // by bucket, place
    for (const auto& [of, update] : update_of_) {
      const Sharing sharing =
          sharing_of(of.second, dag_.buckets[static_cast<std::size_t>(of.first)].first_chunk);
      if (sharing == Sharing::Nothing) {
        continue;
      }
      const int place = dag_.node(update).place;
      const auto [other, alone] = stage_at.emplace(std::pair(of.first, place), of.second);
      if (!alone) {
        faults_.note(
            fmt::format("stages {} and {} are copies of one stage on {}: leave shards "
                        "out, or place them on other ranks",
                        other->second.value,
                        of.second.value,
                        place_text(dag_, place)));
      } else if (sharing != Sharing::Weights) {
        const int gather = dag_.add(gather_node(dag_, of.first, dag_.node(update)));
        dag_.connect(update, gather);
      }
    }
  }

  TrainingDag& dag_;
  const Replicates& replicates_;
  const DividedChunks& divided_;
  StrategyFaults& faults_;
  std::vector<std::vector<int>> directive_of_;  // by stage, chunk
  std::vector<std::vector<int>> bucket_of_;     // likewise
  std::set<StageId> whole_;                     // they share nothing, because of a tie
  std::map<std::pair<int, StageId>, int> update_of_;
  std::map<std::tuple<int, int, Microbatch>, int> reduction_of_;  // by bucket, place
  std::set<std::pair<int, int>> connected_;
};

/// Notes stages on several ranks whose weights nothing keeps equal.
void check_all_replicated(const TrainingDag& dag,
                          const DividedChunks& divided,
                          StrategyFaults& faults) {
  std::set<StageId> noted;
  for (const DagEdge& edge : dag.edges) {
    const DagNode& from = dag.node(edge.from);
    const DagNode& to = dag.node(edge.to);
    if (to.kind == DagKind::Update && computes(from.kind) && to.place != kNone &&
        !divided.contains({from.stage, from.chunk}) &&
        dag.places[static_cast<std::size_t>(to.place)].size() > 1 &&
        noted.insert(to.stage).second) {
      faults.note(
          fmt::format("stage {} is on {} and nothing keeps its copies equal: add replicate "
                      "{{{}:{}}} on {}",
                      to.stage.value,
                      place_text(dag, to.place),
                      kStageTag,
                      to.stage.value,
                      place_text(dag, to.place)));
    }
  }
}

}  // namespace

void replicate(TrainingDag& dag,
               const DagMatcher& matcher,
               const std::vector<Numbered<ReplicateDirective>>& replicates,
               const DividedChunks& divided,
               StrategyFaults& faults) {
  if (!dag.training) {
    gather_weights(dag);
    return;
  }
  if (!replicates.empty() || !divided.empty() || dag.source.graph.replicas() > 1) {
    Replication replication(dag, replicates, divided, faults);
    replication.take(matcher);
    if (faults.none()) {
      replication.apply();
    }
  }
  if (faults.none()) {
    check_all_replicated(dag, divided, faults);
  }
}

}  // namespace stagecraft
