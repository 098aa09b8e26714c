/// StepRound collects the answers of one step: which ranks have answered, and what follows from the
/// answers.
///
/// The driver makes one for each step; it has no actor and no clock. Answers may come twice, late,
/// or for another step.
///
/// SR-1: a rank's first answer counts, every other is dropped.
/// SR-2: the primary error is the first that is not a consequence. Two kinds of error are
///       consequences: an abort, and a connection that ended with its peer if there is another
///       error. A value that is not finite is reported by all ranks. Then the primary error is the
///       report that names the stage; if several do, that of the lowest rank.
/// SR-3: ranks agree on `committed`; otherwise the state of the weights is unknown and the round is
///       lost.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/actors/executor/step/step_record.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

class StepRound {
 public:
  /// `mirrored`: neighbors keep copies of states, for messages. `parts`, `updates`: those of the
  /// order. `shards`: ranks gather weights after their updates.
  StepRound(Submission submission,
            Step step,
            bool training,
            int ranks,
            bool mirrored,
            PartRuns parts = {},
            bool updates = true,
            bool shards = false);

  [[nodiscard]] Submission submission() const { return submission_; }
  [[nodiscard]] Step step() const { return step_; }
  [[nodiscard]] bool training() const { return training_; }
  /// Returns whether the step changes weights.
  [[nodiscard]] bool updates() const { return training_ && updates_; }

  void answered(StepReport done);
  /// Records that the rank has ended or stays silent: the state of its weights is unknown.
  void gave_up(Rank rank, const Error& why);

  [[nodiscard]] bool complete() const { return missing_ == 0; }
  [[nodiscard]] std::vector<Rank> silent() const;

  /// Returns true once a rank failed in a way that leaves others waiting for it.
  [[nodiscard]] bool needs_abort() const { return needs_abort_; }
  /// Returns whether all known failures are transfers: the peer of one may be gone.
  [[nodiscard]] bool lacks_a_cause() const;
  /// Returns whether a rank gave up, so that no answer of the others can save the step.
  [[nodiscard]] bool cannot_succeed() const { return cannot_succeed_; }

  /// Sets the primary error if there is none. Called when a deadline has passed.
  void blame(const Error& why);
  [[nodiscard]] const std::optional<Error>& primary() const { return primary_; }

  /// Returns the reason why the weights are undefined, or nothing. Requires: complete().
  [[nodiscard]] std::optional<Error> lost() const;
  /// Returns why the step failed. Keeps DR-4. Requires: complete(), !succeeded().
  [[nodiscard]] Error failure() const;
  /// Returns whether ranks that committed skipped their update; nothing if no rank committed.
  [[nodiscard]] std::optional<bool> skipped_by_some() const;
  /// Returns whether every rank did its part without an error, even after a deadline. Requires:
  /// complete().
  [[nodiscard]] bool succeeded() const;

  /// Returns the step's result. The arguments are not in the reports: timelines by rank, and the
  /// duration.
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
  bool shards_;
  std::vector<std::optional<StepReport>> answers_;
  std::vector<bool> settled_;
  int missing_;
  bool needs_abort_ = false;
  bool cannot_succeed_ = false;
  std::optional<Error> primary_;
  std::optional<Rank> primary_rank_;
  std::optional<Error> lost_;
};

}  // namespace stagecraft
