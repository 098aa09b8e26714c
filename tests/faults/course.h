/// Course is the undisturbed run, step by step: as one process computes it, or on threads.
///
/// A training run under faults is compared with it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "stagecraft/tests/integration/models.h"

namespace stagecraft::tests {

/// Holds the expected result of a step, and the state after it.
struct Expected {
  ReferenceStep result;
  StateDict weights, buffers;
};

/// CourseOptions are the options of a run that change its bits.
struct CourseOptions {
  std::optional<double> clip;
  int batches = 1;  ///< of an update: of number u those from u * batches on
  std::optional<LossScaling> loss_scaling;
  bool same_batch = false;  ///< trains on the first one alone
};

class Course {
 public:
  /// `sums`: the order in which the run adds gradients (ReferenceOptions::sums).
  explicit Course(const Program& program,
                  std::shared_ptr<const SumOrder> sums = nullptr,
                  const CourseOptions& options = {});
  /// Trains on threads of this process: an expert computes the samples of all ranks at once, which
  /// one process does not.
  explicit Course(Execution execution, const CourseOptions& options = {});

  /// Returns the state after this many updates.
  const Expected& after(std::int64_t updates);

 private:
  struct OnThreads {
    Cluster cluster;
    Trainer trainer;
  };

  /// Makes the update of this number.
  [[nodiscard]] ReferenceStep step(std::int64_t update);
  [[nodiscard]] Expected state();
  [[nodiscard]] StateDict copies_of(std::string_view kind) const;

  const int batches_;
  const bool same_batch_;
  std::unique_ptr<Reference> reference_;
  std::unique_ptr<OnThreads> threads_;
  std::vector<Expected> course_;
};

/// Returns the optimizer that the run itself uses.
[[nodiscard]] AdamW course_optimizer();
inline constexpr std::uint64_t kCourseSeed = 5;

}  // namespace stagecraft::tests
