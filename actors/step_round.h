/// StepRound: one step as the driver sees it: who has answered, and what the answers amount to.
///
/// Made by the driver for each step; no actor, no clock. Answers may come twice, late, or for
/// another step.
///
/// SR-1: a rank's first answer counts, every other is dropped.
/// SR-2: the primary error is the first that is not itself a consequence: of an abort, or, where
///       there is another, of a connection that went with its peer. What is not finite all ranks
///       report: of these it is a report that says in which stage, from a rank that has it, and of
///       several the lowest rank's.
/// SR-3: ranks agree on `committed`, or nobody knows what the weights are: the round is lost.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/actors/executor/step_record.h"
#include "stagecraft/actors/step_result.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

class StepRound {
 public:
  /// `mirrored`: neighbours keep copies of states, for messages. `parts`, `updates`: the order's.
  StepRound(Submission submission,
            Step step,
            bool training,
            int ranks,
            bool mirrored,
            PartRuns parts = {},
            bool updates = true);

  [[nodiscard]] Submission submission() const { return submission_; }
  [[nodiscard]] Step step() const { return step_; }
  [[nodiscard]] bool training() const { return training_; }
  /// It is to change weights.
  [[nodiscard]] bool updates() const { return training_ && updates_; }

  void answered(StepReport done);
  /// The rank has ended or stays silent: what it did to its weights is unknown.
  void gave_up(Rank rank, const Error& why);

  [[nodiscard]] bool complete() const { return missing_ == 0; }
  [[nodiscard]] std::vector<Rank> silent() const;

  /// True once some rank failed in a way that leaves others waiting for it.
  [[nodiscard]] bool needs_abort() const { return needs_abort_; }
  /// All that is known to have failed are transfers: the peer of one may be gone.
  [[nodiscard]] bool lacks_a_cause() const;
  /// A rank gave up: nothing that the others answer can save the step.
  [[nodiscard]] bool hopeless() const { return hopeless_; }

  /// Blames the round, when nobody is to blame yet: a deadline passed.
  void blame(const Error& why);
  [[nodiscard]] const std::optional<Error>& primary() const { return primary_; }

  /// Why the weights are undefined, or nothing. Requires: complete().
  [[nodiscard]] std::optional<Error> lost() const;
  /// Every rank has done its part without an error, be it after a deadline. Requires: complete().
  [[nodiscard]] bool succeeded() const;

  /// What came of it, with what is not in the reports: timelines by rank, and how long it took.
  /// Requires: succeeded().
  [[nodiscard]] StepResult result(std::vector<std::vector<InstructionTime>> timelines,
                                  double seconds) const;

 private:
  void note(Rank rank, const Error& error);

  Submission submission_;
  Step step_;
  bool training_;
  bool mirrored_;
  PartRuns parts_;
  bool updates_;
  std::vector<std::optional<StepReport>> answers_;
  std::vector<bool> settled_;
  int missing_;
  bool needs_abort_ = false;
  bool hopeless_ = false;
  std::optional<Error> primary_;
  std::optional<Rank> primary_rank_;
  std::optional<Error> lost_;
};

}  // namespace stagecraft
