/// FailingRank makes one rank of a trainer throw, or stop, at one of its instructions.
#pragma once

#include <future>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>

#include "stagecraft/stagecraft.h"

namespace stagecraft::tests {

/// Shared by the test and the workers' threads; the mutex guards the point.
class FailingRank {
 public:
  struct Point {
    Rank rank;
    InstructionId instruction;
  };

  /// Makes the rank throw the next time it reaches `point`, and only then.
  void fail_at(Point point) { set(point, false); }
  /// Makes it stop there until let_go().
  void stop_at(Point point) { set(point, true); }
  void let_go() { go_.set_value(); }

  /// Serves as TrainerOptions::before_instruction.
  void operator()(Rank rank, const Instruction& instruction) {
    bool stop = false;
    {
      const std::scoped_lock lock(mutex_);
      if (!point_ || point_->rank != rank || point_->instruction != instruction.id) {
        return;
      }
      point_.reset();
      stop = stop_;
    }
    if (!stop) {
      throw std::runtime_error("injected failure");
    }
    stopped_.set_value();
    gone_.wait();
  }

  /// Waits until a rank has stopped.
  void wait_until_stopped() { stopped_.get_future().wait(); }

 private:
  void set(Point point, bool stop) {
    const std::scoped_lock lock(mutex_);
    point_ = point;
    stop_ = stop;
  }

  std::mutex mutex_;
  std::optional<Point> point_;
  bool stop_ = false;
  std::promise<void> go_, stopped_;
  const std::shared_future<void> gone_ = go_.get_future().share();
};

/// Returns the hook of a trainer. It shares `failing`, which thereby outlives the worker threads.
inline std::function<void(Rank, const Instruction&)> hook_of(std::shared_ptr<FailingRank> failing) {
  return [failing = std::move(failing)](Rank rank, const Instruction& i) { (*failing)(rank, i); };
}

/// Returns the rank's first instruction of this kind.
inline FailingRank::Point first(const Plan& plan, Rank rank, Op op) {
  for (const Instruction& i : plan.list_of(rank).instructions) {
    if (i.op == op) {
      return {rank, i.id};
    }
  }
  throw std::logic_error("the plan has no such instruction");
}

}  // namespace stagecraft::tests
