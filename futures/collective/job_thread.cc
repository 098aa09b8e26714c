#include "stagecraft/futures/collective/job_thread.h"

#include <utility>

#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

JobThread::~JobThread() {
  std::deque<Job> dropped;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
    dropped.swap(jobs_);
  }
  changed_.notify_all();
  thread_ = nullptr;
}

void JobThread::post(Job job) {
  const std::scoped_lock lock(mutex_);
  if (ends_) {
    return;
  }
  jobs_.push_back(std::move(job));
  if (thread_ == nullptr) {
    thread_ = clock_->start([this] { run(); });
  }
  changed_.notify_one();
}

void JobThread::run() {
  if (first_) {
    first_();
  }
  std::unique_lock lock(mutex_);
  while (true) {
    Clock::current()->wait(changed_, lock, [this] { return ends_ || !jobs_.empty(); });
    if (ends_) {
      return;
    }
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    {
      const process_end::AtWork at_work;
      job();
      job = nullptr;  // frees tensors at work
    }
    lock.lock();
  }
}

}  // namespace stagecraft
