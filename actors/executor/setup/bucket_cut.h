/// BucketCut says what a rank has of a bucket of a stage (PlanBucket).
#pragma once

#include <cstdint>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

struct BucketCut {
  ChunkRange chunks;  ///< whose parameters it holds
  /// The optimizer's state of the bucket is divided into shards, and the rank has this one.
  std::int32_t shard = 0;
  std::int32_t shards = 1;
  bool in_rounds = false;  ///< its gradients are summed in rounds, too (P-11)
};

}  // namespace stagecraft
