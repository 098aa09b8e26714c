/// LearningRate: the rate of each step.
///
/// Part of the options of a trainer and of a reference; asked once per step, by the driver of a
/// trainer, which sends the rate to the ranks with the step.
/// LR-1: a rank is told rates, never a function: `of_step` stays in the process of the trainer.
#pragma once

#include <cstdint>
#include <functional>

namespace stagecraft {

/// `warmup` steps rise linearly to the optimizer's lr, then it stays, or falls to zero at
/// `total_steps`: as half a cosine, or in a line. Or any function of the step.
struct LearningRate {
  enum class Kind : std::uint8_t { Constant, Cosine, Linear };
  Kind kind = Kind::Constant;
  std::int64_t warmup = 0;
  std::int64_t total_steps = 0;  ///< required by Cosine and Linear
  /// Instead of all that: the rate of a step (the first is 0), whatever the optimizer's lr. Called
  /// on a thread of the trainer's, for one step at a time, and again for a step that failed.
  /// Returns at once; what it throws, or a rate that is none, fails the step and changes no weight.
  std::function<double(std::int64_t step)> of_step;
};

/// Errors: UsageArgument for a schedule that no run can have.
void check_learning_rate(const LearningRate& rate);

/// Errors: UsageArgument for a number that is no rate: below 0, or not finite. `what` begins the
/// message.
void check_rate(double rate, const char* what);

/// The learning rate of step `step` (the first is 0).
/// Errors: UsageArgument where `of_step` makes none; what it throws.
[[nodiscard]] double learning_rate_at(const LearningRate& schedule, double base, std::int64_t step);

template <class V>
decltype(auto) visit_fields(LearningRate& m, V&& v) {
  return v(m.kind, m.warmup, m.total_steps);
}

}  // namespace stagecraft
