/// Shape is how a simulated run trains: on how many ranks, by which schedule, with which copies of
/// stages and what these share, and with which options. A seed draws it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/tests/faults/course.h"
#include "stagecraft/tests/simulate/random.h"

namespace stagecraft::simulation {

struct Shape {
  std::string way;  ///< of ways()
  int ranks = 2;
  std::optional<double> clip;
  int batches = 1;         ///< of an update
  bool evaluates = false;  ///< between steps
  bool bursts = false;     ///< submits several steps at once, all of one batch
  bool mirror = true;
  bool outlives = false;  ///< workers outlive their drivers; all parameters are in stages then

  /// Returns how many ranks train each stage.
  [[nodiscard]] int copies() const;
  /// Returns whether each of these ranks has all that its stage needs.
  [[nodiscard]] bool has_whole_copies() const;
  [[nodiscard]] tests::CourseOptions course_options() const;
  [[nodiscard]] std::string text() const;
};

/// Returns the names of the ways to train.
[[nodiscard]] const std::vector<std::string>& ways();
/// Returns whether so many ranks can train in this way.
[[nodiscard]] bool fits(const std::string& way, int ranks);

/// `way`: empty for one that is drawn, too. Requires: it fits. `outlives`: so do workers wherever
/// ranks have mirrors.
[[nodiscard]] Shape draw_shape(Random& random, int ranks, const std::string& way, bool outlives);

/// Returns the execution, which the process makes once.
[[nodiscard]] const Execution& execution_of(const std::string& way, int ranks, bool outlives);
/// Makes the unbroken run.
[[nodiscard]] tests::Course make_course_of(const Shape& shape);

/// Returns the other ways to train the same model on so many ranks: they read its checkpoints.
[[nodiscard]] std::vector<std::string> other_ways(const std::string& way, int ranks);

}  // namespace stagecraft::simulation
