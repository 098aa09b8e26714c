/// BucketCut says what a rank has of a bucket of a stage (PlanBucket).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/scheduler/strategy/sharing.h"

namespace stagecraft {

struct BucketCut {
  ChunkRange chunks;  ///< whose parameters it holds
  /// The bucket is divided into shards, and the rank has this one.
  std::int32_t shard = 0;
  std::int32_t shards = 1;
  Sharing sharing = Sharing::Nothing;  ///< what is divided
  std::vector<std::string> tied = {};  ///< parameters that are divided by themselves (BU-10)
  /// The rank has this one of so many equal parts of each parameter, in dimension 0 (P-13).
  std::int32_t part = 0;
  std::int32_t parts = 1;
  std::int32_t copy = 0;  ///< of the part, among the ranks that have the same one

  /// Returns whether a parameter is divided by itself.
  [[nodiscard]] bool lies_alone(std::string_view parameter) const {
    return std::ranges::find(tied, parameter) != tied.end();
  }

  /// Returns whether its parameters are parts of the model's.
  [[nodiscard]] bool is_divided() const { return parts > 1; }

  /// Returns whether its gradients are summed in rounds (P-11).
  [[nodiscard]] bool in_rounds() const { return sharing >= Sharing::Gradients; }
  /// Returns whether its weights are gathered for tasks (P-12).
  [[nodiscard]] bool lends_weights() const { return sharing == Sharing::Weights; }
};

/// Returns the cuts of a stage's buckets for a rank, in the order of the plan's tables.
[[nodiscard]] std::vector<BucketCut> bucket_cuts_of(const PlanTables& tables,
                                                    StageId stage,
                                                    Rank rank);

}  // namespace stagecraft
