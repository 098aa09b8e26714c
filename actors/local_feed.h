/// LocalFeed: what one rank reads of the batches of a source, in place of what the driver would
/// send it (LocalBatch).
///
/// Made by the stage worker with its plan, used on its plan thread; sources are read on a thread of
/// the feed's own, one batch ahead of the steps (Prefetch).
/// LF-1: a microbatch is cut as the driver cuts it, and checked by the same rules (split_batch.h);
///       it gets the order of memory that the program was compiled with.
/// LF-2: a rank reads of a batch what its list receives from the driver; one that receives nothing
///       makes no source.
/// LF-3: batches may come in any order and again; only the next of the same source is had at once.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/local_batch.h"
#include "stagecraft/actors/executor/rank_setup.h"
#include "stagecraft/actors/prefetch.h"
#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

class LocalFeed {
 public:
  explicit LocalFeed(const RankSetup& setup);
  ~LocalFeed();
  LocalFeed(const LocalFeed&) = delete;
  LocalFeed& operator=(const LocalFeed&) = delete;

  /// The next step trains on this one.
  void begin(const LocalBatch& batch);

  /// What the list receives from the driver by that edge for that microbatch: once in a step. Reads
  /// the rank's share of the batch first, where that has not been done.
  /// Errors: with what was to be read, and where: UsageArgument for a source that is not known
  ///         here; those of the source; those of check_batch.
  [[nodiscard]] at::Tensor take(EdgeId edge, Microbatch microbatch);

 private:
  class Share;

  void read();

  const std::vector<Feed> feeds_;
  const std::vector<BatchSlice> inputs_, labels_;
  const int microbatches_;
  LocalBatch batch_;                                             ///< of the step under way
  std::map<std::pair<EdgeId, Microbatch>, at::Tensor> tensors_;  ///< of it, not taken yet
  bool is_read_ = false;
  std::unique_ptr<Share> share_;  ///< what is read
  LocalBatch next_;               ///< that it comes to next
  std::optional<Prefetch> ahead_;
};

}  // namespace stagecraft
