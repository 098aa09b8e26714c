/// JobThread runs jobs one after the other, in the order in which they were given.
///
/// A rank's collectives add gradients on a JobThread, so that sums overlap computation. The thread
/// starts with the first job, by the clock of the thread that made the JobThread. The mutex guards
/// the queue, because any thread may post jobs.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "stagecraft/base/clock.h"

namespace stagecraft {

class JobThread {
 public:
  using Job = std::function<void()>;

  /// `first`: runs on the thread before its first job; may be empty.
  explicit JobThread(Job first = {}) : first_(std::move(first)) {}
  JobThread(const JobThread&) = delete;
  JobThread& operator=(const JobThread&) = delete;
  /// Waits for the running job and drops the jobs in the queue.
  ~JobThread();

  /// Queues a job, which must not throw. It is at work (process_end.h) while it runs.
  void post(Job job);

 private:
  void run();

  const std::shared_ptr<const Clock> clock_ = Clock::current();
  Job first_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ends_ = false;
  std::unique_ptr<Clock::Thread> thread_;  ///< null before the first job
};

}  // namespace stagecraft
