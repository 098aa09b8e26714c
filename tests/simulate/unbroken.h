/// Unbroken is the run without faults with which all runs of a shape are compared, bit by bit.
///
/// The checks throw a Violation for other bits (SI-1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/faults/course.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/simulate/shape.h"

namespace stagecraft::simulation {

class Unbroken {
 public:
  explicit Unbroken(const Shape& shape);
  /// Returns that of a shape, which the process makes once.
  [[nodiscard]] static Unbroken& of(const Shape& shape);

  /// Trains, and evaluates if the shape does, up to this number of updates. It does so outside of
  /// simulations, because it does not have their clock.
  void advance(std::int64_t updates, bool evaluates);

  void check(const StepResult& result);
  void check_state(tests::Trainer& trainer);
  void check_checkpoint(const Checkpoint& checkpoint);
  /// `loss`: the mean loss of the next step's batch.
  void check_evaluation(std::int64_t updates, double loss) const;

  const Execution& execution;
  std::vector<std::pair<std::string, const Execution*>> others;  ///< which read its checkpoints

 private:
  tests::Course course_;
  std::vector<double> evaluations_;
  std::optional<tests::Trainer> on_threads_;
};

}  // namespace stagecraft::simulation
