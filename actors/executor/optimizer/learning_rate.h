/// LearningRate defines the learning rate of each step.
///
/// It is a part of the options of a trainer and of a reference. A trainer's driver computes the
/// rate once per step, and sends it to the ranks with the step.
/// LR-1: ranks receive rates, never a function: `of_step` stays in the process of the trainer.
#pragma once

#include <cstdint>
#include <functional>

namespace stagecraft {

/// LearningRate rises linearly to the optimizer's lr in `warmup` steps. Then it stays, or falls to
/// zero at `total_steps`: as half a cosine, linearly, or (Wsd: warm-up, stable, decay) linearly in
/// the last `decay` steps alone. A function of the step may replace all that.
struct LearningRate {
  enum class Kind : std::uint8_t { Constant, Cosine, Linear, Wsd };
  Kind kind = Kind::Constant;
  std::int64_t warmup = 0;
  std::int64_t total_steps = 0;  ///< required by all but Constant
  std::int64_t decay = 0;        ///< required by Wsd; with `warmup` at most `total_steps`
  /// If set, returns the rate of a step (the first is 0) instead of the above, and ignores the
  /// optimizer's lr. A thread of the trainer calls it, for one step at a time, and again for a step
  /// that failed. It must return at once. An exception, or a number that is no rate, fails the step
  /// and changes no weight.
  std::function<double(std::int64_t step)> of_step;
};

/// Checks the schedule. Errors: UsageArgument for a schedule that no run can have.
void check_learning_rate(const LearningRate& rate);

/// Checks a rate.
/// Errors: UsageArgument for a number that is no rate: below 0, or not finite. The message begins
/// with `what`.
void check_rate(double rate, const char* what);

/// Returns the learning rate of step `step` (the first is 0).
/// Errors: UsageArgument if `of_step` returns no rate; its exceptions.
[[nodiscard]] double learning_rate_at(const LearningRate& schedule, double base, std::int64_t step);

template <class V>
decltype(auto) visit_fields(LearningRate& m, V&& v) {
  return v(m.kind, m.warmup, m.total_steps, m.decay);
}

}  // namespace stagecraft
