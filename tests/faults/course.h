/// Course is the undisturbed run, step by step: as one process computes it, or on threads.
///
/// A training run under faults is compared with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stagecraft/tests/integration/models.h"

namespace stagecraft::tests {

/// Holds the expected result of a step, and the state after it.
struct Expected {
  ReferenceStep result;
  StateDict weights, buffers;
};

class Course {
 public:
  /// `sums`: the order in which the run adds gradients (ReferenceOptions::sums).
  explicit Course(const Program& program, std::shared_ptr<const SumOrder> sums = nullptr);
  /// Trains on threads of this process: an expert computes the samples of all ranks at once, which
  /// one process does not.
  explicit Course(Execution execution);

  /// Returns the state after this many updates.
  const Expected& after(std::int64_t updates);

 private:
  struct OnThreads {
    Cluster cluster;
    Trainer trainer;
  };

  [[nodiscard]] ReferenceStep step(const Data& batch);
  [[nodiscard]] Expected state();
  [[nodiscard]] StateDict copies_of(std::string_view kind) const;

  std::unique_ptr<Reference> reference_;
  std::unique_ptr<OnThreads> threads_;
  std::vector<Expected> course_;
};

/// Returns the optimizer that the run itself uses.
[[nodiscard]] AdamW course_optimizer();
inline constexpr std::uint64_t kCourseSeed = 5;

}  // namespace stagecraft::tests
