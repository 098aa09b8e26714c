#include "stagecraft/tests/simulate/strands.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <utility>

#include <semaphore.h>

namespace stagecraft::simulation {
namespace {

/// Turn passes from one thread to another. It does not yield while it waits, as
/// std::binary_semaphore does: on a busy processor each yield costs what others compute meanwhile.
class Turn {
 public:
  Turn() { sem_init(&turn_, 0, 0); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { sem_destroy(&turn_); }
  void release() { sem_post(&turn_); }
  void acquire() {
    while (sem_wait(&turn_) != 0) {  // a signal has come
    }
  }

 private:
  sem_t turn_;
};

}  // namespace

class Strands::Strand {
 public:
  Strand() : thread_([this] { run(); }) {}
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;
  ~Strand() {
    turn_.release();  // without work: ends
    thread_.join();
  }

  /// Called by the simulation: returns when the strand waits or has no work.
  void go() {
    turn_.release();
    back_.acquire();
  }

  /// Called on the strand.
  void wait(const std::function<bool()>& condition, Time when) {
    condition_ = &condition;
    when_ = when;
    back_.release();
    turn_.acquire();
    condition_ = nullptr;
  }

  bool is_taken = false;
  ProcessNumber process = 0;
  std::shared_ptr<const Clock> clock;  ///< of the process
  std::function<void()> work;

  /// Returns whether it can continue now. Nothing waits for a strand that has not begun.
  [[nodiscard]] bool is_ready() const {
    return condition_ == nullptr ? work != nullptr : when_ <= clock->now() || (*condition_)();
  }
  [[nodiscard]] bool waits() const { return condition_ != nullptr; }
  /// Returns how long its wait may still take; nothing if it waits for ever or not at all.
  [[nodiscard]] std::optional<Time::duration> left() const {
    return condition_ == nullptr || when_ == Time::max() ? std::nullopt
                                                         : std::optional(when_ - clock->now());
  }

  static thread_local Strand* mine;

 private:
  void run() {
    mine = this;
    while (true) {
      turn_.acquire();
      if (!work) {
        return;
      }
      {
        const ClockOfThread scope(clock);
        work();
        work = nullptr;
      }
      back_.release();
    }
  }

  Turn turn_, back_;
  const std::function<bool()>* condition_ = nullptr;
  Time when_;
  std::thread thread_;  // last: it uses all other members
};

thread_local Strands::Strand* Strands::Strand::mine = nullptr;
thread_local int InDestructor::count = 0;

/// StrandThread is a thread that was started by a process's clock.
class Strands::StrandThread final : public Clock::Thread {
 public:
  StrandThread(Strands& strands, ProcessNumber process, std::function<void()> work)
      : strand_(strands.take(process)) {
    prepare(strand_, [this, work = std::move(work)] {
      try {
        work();
      } catch (const ProcessEnded&) {
      }
      has_ended_ = true;
    });
  }
  ~StrandThread() override {
    while (!has_ended_) {  // also in a process that has ended: its work uses what its starter has
      Strand::mine->wait([this] { return has_ended_; }, Time::max());
    }
    give_back(strand_);
  }

 private:
  Strand& strand_;
  bool has_ended_ = false;
};

class Strands::ProcessClock final : public Clock {
 public:
  ProcessClock(Strands& strands, ProcessNumber process) : strands_(strands), process_(process) {}

  [[nodiscard]] Time now() const override { return strands_.now() + ahead_; }

  void shift(Time::duration span) { ahead_ += span; }

  bool wait_until(std::condition_variable&,
                  std::unique_lock<std::mutex>& lock,
                  Time when,
                  const std::function<bool()>& condition) const override {
    if (condition()) {
      return true;
    }
    if (now() >= when) {
      return false;
    }
    if (Strand::mine == nullptr) {
      // CAF would take an exception for the end of the actor.
      std::fputs("an actor that must not block waits\n", stderr);
      std::abort();
    }
    if (strands_.has_ended(process_)) {
      return unwind();
    }
    lock.unlock();
    Strand::mine->wait(condition, when);
    lock.lock();
    return strands_.has_ended(process_) ? unwind() : condition();
  }

  [[nodiscard]] std::unique_ptr<Thread> start(std::function<void()> work) const override {
    return std::make_unique<StrandThread>(strands_, process_, std::move(work));
  }

 private:
  static bool unwind() {
    if (std::uncaught_exceptions() == 0 && InDestructor::count == 0) {
      throw ProcessEnded();
    }
    return false;
  }

  Strands& strands_;
  const ProcessNumber process_;
  Time::duration ahead_ = std::chrono::minutes(17) * (process_ + 1);  ///< any, but no other's
};

Strands::Strands(const caf::detail::test_actor_clock& time) : time_(time) {}

Strands::~Strands() = default;

const std::shared_ptr<Strands::ProcessClock>& Strands::process_clock(ProcessNumber process) {
  std::shared_ptr<ProcessClock>& clock = clocks_[process];
  if (clock == nullptr) {
    clock = std::make_shared<ProcessClock>(*this, process);
  }
  return clock;
}

std::shared_ptr<const Clock> Strands::clock_of(ProcessNumber process) {
  return process_clock(process);
}

void Strands::shift_clock(ProcessNumber process, Time::duration span) {
  process_clock(process)->shift(span);
}

Strands::Strand& Strands::take(ProcessNumber process) {
  auto free = std::ranges::find_if(strands_, [](const auto& s) { return !s->is_taken; });
  if (free == strands_.end()) {
    free = strands_.insert(free, std::make_unique<Strand>());
  }
  (*free)->is_taken = true;
  (*free)->process = process;
  (*free)->clock = clock_of(process);
  return **free;
}

void Strands::give_back(Strand& strand) {
  strand.is_taken = false;
}

void Strands::prepare(Strand& strand, std::function<void()> work) {
  strand.work = std::move(work);
}

bool Strands::is_ready(const Strand& strand) const {
  return strand.is_ready() || (strand.waits() && has_ended(strand.process));
}

void Strands::resume(Strand& strand) {
  strand.go();
}

ProcessNumber Strands::process_of(const Strand& strand) {
  return strand.process;
}

std::optional<ProcessNumber> Strands::process_here() {
  return Strand::mine == nullptr ? std::nullopt : std::optional(Strand::mine->process);
}

std::optional<Strands::Time> Strands::next_deadline(
    const std::function<bool(ProcessNumber)>& of) const {
  std::optional<Time> next;
  for (const auto& strand : strands_) {
    if (const auto left = strand->left(); left && of(strand->process)) {
      const Time when = now() + *left;
      next = std::min(next.value_or(when), when);
    }
  }
  return next;
}

namespace {

void wait_until(Clock::Time when, const std::function<bool()>& condition) {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  (void)Clock::current()->wait_until(changed, lock, when, condition);
}

}  // namespace

void wait_on_strand(const std::function<bool()>& condition) {
  wait_until(Clock::Time::max(), condition);
}

void pause_strand(Clock::Time::duration span) {
  wait_until(Clock::current()->now() + span, [] { return false; });
}

}  // namespace stagecraft::simulation
