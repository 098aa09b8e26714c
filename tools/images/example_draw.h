/// ExampleDraw: which examples of a set a step trains on, and which none does.
///
/// ED-1: depends on (seed, step) and the set alone, so that a resumed run, another schedule and
///       another cut meet the same batches.
/// ED-2: of every class each tenth example is held out for evaluations, and the last where a class
///       has two to nine; no step trains on these.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace stagecraft::tools {

class ExampleDraw {
 public:
  /// `classes`: of each example; all 0 where there are none.
  explicit ExampleDraw(const std::vector<std::int64_t>& classes);

  /// None where every class has but one.
  [[nodiscard]] bool has_evaluation() const { return held_out_.numel() > 0; }

  /// Examples by index, none twice while there are enough. Shape: [count] of int64.
  [[nodiscard]] at::Tensor of_step(std::uint64_t seed, std::int64_t step, std::int64_t count) const;
  /// Of those held out; the same for every evaluation. Requires: has_evaluation().
  [[nodiscard]] at::Tensor of_evaluation(std::uint64_t seed, std::int64_t count) const;

 private:
  at::Tensor trained_, held_out_;
};

/// What (seed, step) decides, each by a generator of its own.
enum class Drawn : std::uint8_t { Examples, Noise, Captions };

[[nodiscard]] at::Generator generator_of(std::uint64_t seed, std::int64_t step, Drawn what);

}  // namespace stagecraft::tools
