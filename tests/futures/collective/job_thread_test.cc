#include "stagecraft/futures/collective/job_thread.h"

#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/steady_clock.h"

namespace stagecraft {
namespace {

/// Counts the threads that it starts, and calls `on_end` when somebody begins to wait for one.
class CountingClock final : public testing::SteadyClock {
 public:
  [[nodiscard]] std::unique_ptr<Thread> start(std::function<void()> work) const override {
    ++started;
    return std::make_unique<Counted>(*this, Clock::start(std::move(work)));
  }

  mutable int started = 0;
  std::function<void()> on_end = [] {};

 private:
  class Counted final : public Thread {
   public:
    Counted(const CountingClock& clock, std::unique_ptr<Thread> thread)
        : clock_(clock), thread_(std::move(thread)) {}
    ~Counted() override { clock_.on_end(); }

   private:
    const CountingClock& clock_;
    const std::unique_ptr<Thread> thread_;
  };
};

TEST_CASE("jobs run one after the other on a thread of their own", "[futures][job-thread]") {
  std::vector<int> ran;
  std::vector<std::thread::id> threads;
  std::promise<void> done;
  JobThread jobs([&] { ran.push_back(0); });
  for (int i = 1; i <= 3; ++i) {
    jobs.post([&, i] {
      ran.push_back(i);
      threads.push_back(std::this_thread::get_id());
      if (i == 3) {
        done.set_value();
      }
    });
  }
  done.get_future().wait();
  CHECK(ran == std::vector{0, 1, 2, 3});
  CHECK(threads == std::vector(3, threads.front()));
  CHECK(threads.front() != std::this_thread::get_id());
}

TEST_CASE("the clock of its maker starts a job thread, with the first job",
          "[futures][job-thread]") {
  const auto clock = std::make_shared<CountingClock>();
  std::unique_ptr<JobThread> jobs;
  {
    const ClockOfThread scope(clock);
    jobs = std::make_unique<JobThread>();
  }
  CHECK(clock->started == 0);
  std::promise<void> first, second;
  jobs->post([&] { first.set_value(); });
  first.get_future().wait();
  jobs->post([&] { second.set_value(); });
  second.get_future().wait();
  CHECK(clock->started == 1);
}

TEST_CASE("the end of a job thread waits for the running job and drops the others",
          "[futures][job-thread]") {
  const auto clock = std::make_shared<CountingClock>();
  const ClockOfThread scope(clock);
  std::promise<void> runs, may_end;
  clock->on_end = [&] { may_end.set_value(); };
  bool has_ended = false, ran_another = false;
  auto jobs = std::make_unique<JobThread>();
  jobs->post([&] {
    runs.set_value();
    may_end.get_future().wait();
    has_ended = true;
  });
  jobs->post([&] { ran_another = true; });
  runs.get_future().wait();
  jobs = nullptr;
  CHECK(has_ended);
  CHECK_FALSE(ran_another);
}

}  // namespace
}  // namespace stagecraft
