/// Course: the run that nothing happens to, step by step, as one process computes it.
///
/// What a training run that faults happen to is compared with.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stagecraft/tests/integration/models.h"

namespace stagecraft::tests {

/// What a step was to give, and what is there after it.
struct Expected {
  ReferenceStep result;
  StateDict weights, buffers;
};

class Course {
 public:
  explicit Course(const Program& program);

  /// After so many updates.
  const Expected& after(std::int64_t updates);

 private:
  [[nodiscard]] Expected state() const;
  [[nodiscard]] StateDict copies_of(std::string_view kind) const;

  Reference reference_;
  std::vector<Expected> course_;
};

/// What the run itself trains with.
[[nodiscard]] AdamW course_optimizer();
inline constexpr std::uint64_t kCourseSeed = 5;

}  // namespace stagecraft::tests
