/// TieSum: what becomes of the parts that several stages have of a tied parameter's gradient,
/// before the vote.
///
/// Made once by Commit for each tie of its rank, and by the reference for all; used on the thread
/// that trains the stages.
/// TY-1: parts are added in the order of the tie's stages, whatever ranks these are on, so that all
///       copies of a parameter get the bits that one process gets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage_runtime.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

class TieSum {
 public:
  /// `stages`: all of rank `self`, which outlive it. `group`: its number among the rank's groups.
  /// Requires: a sound tie (verify_setup.h).
  TieSum(const Tie& tie, Rank self, const std::vector<StageRuntime>& stages, std::int32_t group);

  /// Replaces the parts of this rank's stages by the sum. Nothing is sent where one rank has them
  /// all. `sequence` is the step's.
  /// Errors: those of all_gather and its wait; Internal on a rank that has none of the stages.
  void run(Collective& collective, const Sequence& sequence, Deadline deadline) const;

 private:
  using Part = std::vector<at::Tensor>;  // the gradient of each parameter, as one stage has it

  [[nodiscard]] at::Tensor packed() const;

  Group group_;
  std::vector<Part> mine_;          // by stage of this rank, in the order of the tie
  std::vector<std::int64_t> rows_;  // by stage of the tie: where its part lies in what is gathered
  std::int64_t most_ = 0;           // parts of one rank: all contribute so many
  std::int64_t width_ = 0;          // elements of a part
};

}  // namespace stagecraft
