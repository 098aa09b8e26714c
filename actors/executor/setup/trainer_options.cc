#include "stagecraft/actors/executor/setup/trainer_options.h"

#include <string>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr std::chrono::hours kLongestDeadline{24 * 365};  // no clock's arithmetic overflows

}  // namespace

void check_clip(double norm, const std::optional<double>& clip_value) {
  if (!(norm > 0.0)) {
    throw Error(Errc::UsageArgument,
                fmt::format("the largest norm of a gradient is above 0, not {}", norm));
  }
  if (clip_value) {
    throw Error(Errc::UsageArgument,
                "the options clip gradients by value (clip_value), so a step cannot clip them by "
                "their norm: use options without it");
  }
}

void check_options(const TrainerOptions& options) {
  const auto require = [](bool good, const char* option, const std::string& what) {
    if (!good) {
      throw Error(Errc::UsageArgument, fmt::format("{} is {}", kOption, what)).about(option);
    }
  };
  require(options.outstanding >= 1,
          "outstanding",
          fmt::format("at least 1, not {}", options.outstanding));
  require(options.threads_per_worker >= 1,
          "threads_per_worker",
          fmt::format("at least 1, not {}", options.threads_per_worker));
  require(!options.clip || *options.clip > 0.0,
          "clip",
          fmt::format("a norm above 0, not {}", options.clip.value_or(0.0)));
  require(!options.clip_value || *options.clip_value > 0.0,
          "clip_value",
          fmt::format("a number above 0, not {}", options.clip_value.value_or(0.0)));
  require(!options.clip || !options.clip_value,
          "clip_value",
          "for gradients that are not clipped by their norm: leave clip or clip_value out");
  require(!options.average || (*options.average >= 0.0 && *options.average < 1.0),
          "average",
          fmt::format("a number from 0 up to, not including, 1, not {}",
                      options.average.value_or(0.0)));
  require(!options.loss_scaling || is_possible(*options.loss_scaling),
          "loss_scaling",
          "a power of two from 1 to 2^64 that doubles after 1 or more updates");
  require(!options.memory_limit || *options.memory_limit > 0,
          "memory_limit",
          fmt::format("a number of bytes above 0, not {}", options.memory_limit.value_or(0)));
  for (const auto& [option, deadline] : {std::pair{"step_deadline", options.step_deadline},
                                         std::pair{"state_deadline", options.state_deadline},
                                         std::pair{"end_deadline", options.end_deadline}}) {
    require(deadline.count() > 0 && deadline <= kLongestDeadline,
            option,
            fmt::format("above 0 and at most a year, not {} ms", deadline.count()));
  }
  check_learning_rate(options.learning_rate);
}

}  // namespace stagecraft
