#include "stagecraft/actors/executor/setup/trainer_options.h"

#include <string>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr std::chrono::hours kLongestDeadline{24 * 365};  // no clock's arithmetic overflows

}  // namespace

void check_options(const TrainerOptions& options) {
  const auto require = [](bool good, const std::string& what) {
    if (!good) {
      throw Error(Errc::UsageArgument, what);
    }
  };
  require(options.outstanding >= 1,
          fmt::format("outstanding is at least 1, not {}", options.outstanding));
  require(options.threads_per_worker >= 1,
          fmt::format("threads_per_worker is at least 1, not {}", options.threads_per_worker));
  require(!options.clip || *options.clip > 0.0,
          fmt::format("clip is a norm above 0, not {}", options.clip.value_or(0.0)));
  require(!options.memory_limit || *options.memory_limit > 0,
          fmt::format("memory_limit is a number of bytes above 0, not {}",
                      options.memory_limit.value_or(0)));
  for (const auto deadline :
       {options.step_deadline, options.state_deadline, options.end_deadline}) {
    require(deadline.count() > 0 && deadline <= kLongestDeadline,
            fmt::format("deadlines are above 0 and at most a year, not {} ms", deadline.count()));
  }
  check_learning_rate(options.learning_rate);
}

}  // namespace stagecraft
