/// LocalFeed reads one rank's share of the batches of a source, so that the driver need not send it
/// (LocalBatch).
///
/// The stage worker makes it with its plan and uses it on its plan thread. A thread of the feed
/// reads sources, one batch ahead of the steps (Prefetch).
/// LF-1: a microbatch is cut as the driver cuts it, and checked by the same rules (split_batch.h);
///       it gets the memory order with which the program was compiled.
/// LF-2: a rank reads the parts of a batch that its instruction list receives from the driver. A
///       rank that receives nothing makes no source.
/// LF-3: batches may come in any order and more than once; only the next one of the same source is
///       ready at once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/data/prefetch.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/step/local_batch.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

class LocalFeed {
 public:
  explicit LocalFeed(const RankSetup& setup);
  ~LocalFeed();
  LocalFeed(const LocalFeed&) = delete;
  LocalFeed& operator=(const LocalFeed&) = delete;

  /// Sets the batch of the next step.
  void begin(const LocalBatch& batch);

  /// Returns the tensor that the list receives from the driver by that edge for that microbatch,
  /// once in a step. Reads the rank's share of the batch first, if that has not been done.
  /// Errors: each names the read and its place: UsageArgument for a source that is not known here;
  /// those of the source; those of check_batch.
  [[nodiscard]] at::Tensor take(EdgeId edge, Microbatch microbatch);

 private:
  class Share;

  void read();

  const std::vector<Feed> feeds_;
  const std::vector<BatchSlice> inputs_, labels_;
  const int microbatches_;
  const std::string device_;
  LocalBatch batch_;                                             ///< of the step in progress
  std::map<std::pair<EdgeId, Microbatch>, at::Tensor> tensors_;  ///< of it, not taken yet
  bool is_read_ = false;
  std::unique_ptr<Share> share_;  ///< reads the source
  LocalBatch next_;               ///< the batch that it reads next
  std::optional<Prefetch> ahead_;
};

}  // namespace stagecraft
