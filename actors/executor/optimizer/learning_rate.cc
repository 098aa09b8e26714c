#include "stagecraft/actors/executor/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

const char* name_of(LearningRate::Kind kind) {
  switch (kind) {
    case LearningRate::Kind::Constant:
      return "constant";
    case LearningRate::Kind::Cosine:
      return "cosine";
    case LearningRate::Kind::Linear:
      return "linear";
    case LearningRate::Kind::Wsd:
      return "wsd";
  }
  return "";
}

}  // namespace

void check_learning_rate(const LearningRate& rate) {
  if (rate.warmup < 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("warmup is a number of steps, not {}", rate.warmup));
  }
  if (rate.kind != LearningRate::Kind::Constant && rate.total_steps <= 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("a {} learning rate needs total_steps above 0", name_of(rate.kind)));
  }
  if ((rate.kind == LearningRate::Kind::Wsd) != (rate.decay != 0)) {
    throw Error(Errc::UsageArgument,
                "decay is the number of steps in which a wsd learning rate falls to 0, and no "
                "other kind has one: set both, or leave decay out");
  }
  if (rate.decay < 0 || (rate.decay > 0 && rate.decay > rate.total_steps - rate.warmup)) {
    throw Error(Errc::UsageArgument,
                fmt::format("decay is a number of steps that fits between warmup and total_steps "
                            "({} and {}), not {}",
                            rate.warmup,
                            rate.total_steps,
                            rate.decay));
  }
  if (rate.of_step && (rate.kind != LearningRate::Kind::Constant || rate.warmup != 0)) {
    throw Error(Errc::UsageArgument,
                "of_step gives the rate of every step: leave kind and warmup of the learning rate "
                "out, or of_step");
  }
}

void check_rate(double rate, const char* what) {
  if (!std::isfinite(rate) || rate < 0.0) {
    throw Error(Errc::UsageArgument, fmt::format("{} is a number from 0 on, not {}", what, rate));
  }
}

double learning_rate_at(const LearningRate& schedule, double base, std::int64_t step) {
  if (schedule.of_step) {
    const double rate = schedule.of_step(step);
    check_rate(rate, "the learning rate that of_step returns");
    return rate;
  }
  const auto position = static_cast<double>(step);
  const auto warmup = static_cast<double>(schedule.warmup);
  if (step < schedule.warmup) {
    return base * (position + 1.0) / warmup;
  }
  if (schedule.kind == LearningRate::Kind::Constant) {
    return base;
  }
  const auto end = static_cast<double>(schedule.total_steps);
  const bool falls_late = schedule.kind == LearningRate::Kind::Wsd;
  const double begin = falls_late ? end - static_cast<double>(schedule.decay) : warmup;
  const double progress = std::clamp((position - begin) / std::max(1.0, end - begin), 0.0, 1.0);
  if (schedule.kind != LearningRate::Kind::Cosine) {
    return base * (1.0 - progress);
  }
  return base * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace stagecraft
