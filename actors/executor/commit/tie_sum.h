/// TieSum: sums the parts of a tied parameter's gradient that several stages have, before the vote.
///
/// Made once by Commit for each tie of its rank, and by the reference for all ties; used on the
/// thread that trains the stages.
/// TY-1: parts are added in the order of the tie's stages, on any ranks, so that all copies of
///       a parameter get the bits that one process gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

class TieSum {
 public:
  /// `stages`: all stages of rank `self`, which outlive it. `group`: its number among the rank's
  /// groups.
  /// Requires: a sound tie (verify_setup.h).
  TieSum(const Tie& tie, Rank self, const std::vector<StageRuntime>& stages, std::int32_t group);

  /// Replaces the parts of this rank's stages by the sum. Sends nothing if one rank has all parts.
  /// `sequence` is the step's.
  /// Errors: those of all_gather and its wait; Internal on a rank that has none of the stages.
  void run(Collective& collective, const Sequence& sequence, Deadline deadline) const;

 private:
  using Part = std::vector<at::Tensor>;  // the gradient of each parameter in one stage

  [[nodiscard]] at::Tensor packed() const;

  Group group_;
  std::vector<Part> mine_;          // by stage of this rank, in the order of the tie
  std::vector<std::int64_t> rows_;  // by stage of the tie: where its part lies when gathered
  std::int64_t most_ = 0;           // most parts of a rank: all ranks send so many
  std::int64_t width_ = 0;          // elements of a part
};

}  // namespace stagecraft
