/// TieSum sums the parts of a tied parameter's gradient that several stages have, before the vote.
///
/// group_sums() makes it for a rank, and the reference for all stages. The thread that trains the
/// stages uses it.
/// TY-1: parts are added in the order of the tie's stages, on any ranks, so that all copies of
///       a parameter get the bits that one process gets.
/// TY-2: stages whose copies have shards add up the same shard of each parameter (BU-10), as the
///       sums over copies have left it (take_share). All its elements are added as in the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/commit/group_sum.h"

namespace stagecraft {

/// TieParts says where the parts of a tie are.
struct TieParts {
  std::vector<Rank> ranks;                ///< by stage of the tie
  std::vector<std::string> parameters;    ///< those of the tie
  std::vector<const StageRuntime*> mine;  ///< by stage of the tie; null on another rank
};

class TieSum final : public GroupSum {
 public:
  /// The stages outlive the sum. Requires: all of them have the parameters, in the same shapes, and
  /// the same shard of them if they have shards.
  TieSum(Group members, const TieParts& parts);

  /// Starts the sum. Sends nothing if one rank has all parts.
  void start(Collective& collective, const Sequence& step, const SumTurn& turn) override;
  void finish(Deadline deadline) override;
  void drop() override { gathered_.reset(); }

 private:
  using Part = std::vector<at::Tensor>;  // the gradient of each parameter in one stage

  [[nodiscard]] std::vector<Part> own_parts() const;
  [[nodiscard]] at::Tensor packed() const;

  const Group members_;
  const std::vector<std::string> parameters_;
  std::vector<const StageRuntime*> mine_;  // by stage of this rank, in the order of the tie
  std::vector<std::int64_t> rows_;         // by stage of the tie: where its part lies when gathered
  std::int64_t most_ = 0;                  // most parts of a rank: all ranks send so many
  std::unique_ptr<PendingResult> gathered_;
};

}  // namespace stagecraft
