#include "stagecraft/tools/train/run/healing.h"

#include <algorithm>

#include <fmt/format.h>

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

std::string work_text(RunWork work, std::int64_t step) {
  switch (work) {
    case RunWork::Step:
      return fmt::format("step {}", step);
    case RunWork::Evaluation:
      return fmt::format("the evaluation after step {}", step - 1);
    case RunWork::Reading:
      return fmt::format("reading the state after step {}", step - 1);
  }
  return "";
}

}  // namespace

/// Keeps HG-1.
bool is_healable(const Error& failure, const std::vector<Rank>& replaceable) {
  const std::optional<Rank> rank = failure.context().rank;
  const bool can_replace = rank && std::ranges::find(replaceable, *rank) != replaceable.end();
  switch (failure.code()) {
    case Errc::WorkerLost:
    case Errc::ClusterMember:
      return !rank || can_replace;
    case Errc::ClusterTimeout:
    case Errc::DeviceOutOfMemory:
      return can_replace;
    default:
      return false;
  }
}

/// Notes the task, if it is known. Returns whether the rank has not failed in it before.
bool Healing::is_first(const Error& failure, std::int64_t step, RunWork work) {
  const ErrorContext& where = failure.context();
  return where.task.empty() || failed_.emplace(work, step, where.rank, where.task).second;
}

void Healing::admit(const Error& failure, std::int64_t step, std::optional<RunWork> work) {
  if (limits_.restarts == 0 || !is_healable(failure, replaceable_)) {
    throw Error(failure);
  }
  if (work && !is_first(failure, step, *work)) {  // keeps HG-2
    throw with_reason(failure,
                      fmt::format("task {} of {} has failed twice, so its batch is the likely "
                                  "cause, and --restarts does not try it again",
                                  failure.context().task,
                                  work_text(*work, step)));
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
