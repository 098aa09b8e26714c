/// ExampleDraw chooses the examples of a set on which a step trains, and those that are held out.
///
/// ED-1: the draw depends on (seed, step) and the set alone, so that a resumed run, another
///       schedule and another cut get the same batches.
/// ED-2: every tenth example of a class is held out for evaluations, and the last if the class has
///       two to nine; no step trains on these.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft::tools {

class ExampleDraw {
 public:
  /// `classes`: class of each example; all 0 if there are none.
  explicit ExampleDraw(const std::vector<std::int64_t>& classes);

  /// Returns false if every class has only one example.
  [[nodiscard]] bool has_evaluation() const { return held_out_.numel() > 0; }

  /// Returns indices of examples, none twice while there are enough. Shape: [count] of int64.
  [[nodiscard]] at::Tensor of_step(std::uint64_t seed, std::int64_t step, std::int64_t count) const;
  /// Returns examples that are held out; the same for every evaluation. Requires: has_evaluation().
  [[nodiscard]] at::Tensor of_evaluation(std::uint64_t seed, std::int64_t count) const;

 private:
  at::Tensor trained_, held_out_;
};

/// Drawn lists the draws that (seed, step) decides, each by its own generator.
enum class Drawn : std::uint8_t { Examples, Noise, Captions };

[[nodiscard]] at::Generator generator_of(std::uint64_t seed, std::int64_t step, Drawn what);

}  // namespace stagecraft::tools
