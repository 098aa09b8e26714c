#include "stagecraft/tools/train/run/healing.h"

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"

namespace stagecraft::tools {
namespace {

/// Returns the failure with the reason why it ends the run.
Error with_reason(const Error& failure, const std::string& reason) {
  Error told(failure.code(), fmt::format("{}; {}", failure.text(), reason));
  told.about(failure.option()).advise(failure.advice()).with(failure.context());
  if (failure.cause() != nullptr) {
    told.because(*failure.cause());
  }
  return told;
}

}  // namespace

/// Keeps HG-1.
bool is_healable(const Error& failure, int ranks) {
  const std::optional<Rank> rank = failure.context().rank;
  switch (failure.code()) {
    case Errc::WorkerLost:
    case Errc::ClusterMember:
      return true;
    case Errc::ClusterTimeout:
    case Errc::DeviceOutOfMemory:
      return rank && rank->value >= 0 && rank->value < ranks;
    default:
      return false;
  }
}

void Healing::admit(const Error& failure, std::int64_t step, bool in_step) {
  if (limits_.restarts == 0 || !is_healable(failure, ranks_)) {
    throw Error(failure);
  }
  const std::string& task = failure.context().task;
  if (in_step && !task.empty() && !failed_.emplace(step, task).second) {  // keeps HG-2
    throw with_reason(failure,
                      fmt::format("task {} of step {} has failed twice, so its batch is the likely "
                                  "cause, and --restarts does not try it again",
                                  task,
                                  step));
  }
  if (restarts_ == limits_.restarts) {
    throw with_reason(failure,
                      restarts_ == 1
                          ? std::string("the restart of --restarts 1 is used up")
                          : fmt::format("the {} restarts of --restarts are used up", restarts_));
  }
  const Clock::Time now = clock_->now();
  if (recent_.size() == HealingLimits::kMostInWindow) {
    if (now - recent_.front() < limits_.window) {
      throw with_reason(
          failure,
          fmt::format("{} restarts within {} s have not helped: find the cause, or give a shorter "
                      "--restart-window",
                      recent_.size(),
                      limits_.window.count()));
    }
    recent_.pop_front();
  }
  recent_.push_back(now);
  ++restarts_;
}

}  // namespace stagecraft::tools
