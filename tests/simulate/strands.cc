#include "stagecraft/tests/simulate/strands.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <utility>

namespace stagecraft::simulation {

class Strands::Strand {
 public:
  explicit Strand(const Strands& clock) : thread_([this, &clock] { run(clock); }) {}
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
  std::function<void()> work;

  [[nodiscard]] bool waits() const { return condition_ != nullptr; }
  [[nodiscard]] bool holds() const { return (*condition_)(); }
  [[nodiscard]] Time when() const { return when_; }

  static thread_local Strand* mine;

 private:
  void run(const Strands& clock) {
    mine = this;
    const ClockOfThread scope(std::shared_ptr<const Clock>(std::shared_ptr<void>(), &clock));
    while (true) {
      turn_.acquire();
      if (!work) {
        return;
      }
      work();
      work = nullptr;
      back_.release();
    }
  }

  std::binary_semaphore turn_{0}, back_{0};
  const std::function<bool()>* condition_ = nullptr;
  Time when_;
  std::thread thread_;  // last: it uses all other members
};

thread_local Strands::Strand* Strands::Strand::mine = nullptr;
thread_local int InDestructor::count = 0;

Strands::Strands(const caf::detail::test_actor_clock& time) : time_(time) {}

Strands::~Strands() = default;

bool Strands::wait_until(std::condition_variable&,
                         std::unique_lock<std::mutex>& lock,
                         Time when,
                         const std::function<bool()>& condition) const {
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
  const auto end = [] {
    if (std::uncaught_exceptions() == 0 && InDestructor::count == 0) {
      throw ProcessEnded();
    }
    return false;
  };
  if (has_ended(Strand::mine->process)) {
    return end();
  }
  lock.unlock();
  Strand::mine->wait(condition, when);
  lock.lock();
  return has_ended(Strand::mine->process) ? end() : condition();
}

Strands::Strand& Strands::take(ProcessNumber process) {
  auto free = std::ranges::find_if(strands_, [](const auto& s) { return !s->is_taken; });
  if (free == strands_.end()) {
    free = strands_.insert(free, std::make_unique<Strand>(*this));
  }
  (*free)->is_taken = true;
  (*free)->process = process;
  return **free;
}

void Strands::give_back(Strand& strand) {
  strand.is_taken = false;
}

void Strands::begin(Strand& strand, std::function<void()> work) {
  strand.work = std::move(work);
  strand.go();
}

std::vector<Strands::Strand*> Strands::ready() const {
  std::vector<Strand*> ready;
  for (const auto& strand : strands_) {
    if (strand->waits() &&
        (strand->when() <= now() || has_ended(strand->process) || strand->holds())) {
      ready.push_back(strand.get());
    }
  }
  return ready;
}

void Strands::resume(Strand& strand) {
  strand.go();
}

ProcessNumber Strands::process_of(const Strand& strand) {
  return strand.process;
}

std::optional<Clock::Time> Strands::next_deadline(
    const std::function<bool(ProcessNumber)>& of) const {
  std::optional<Time> next;
  for (const auto& strand : strands_) {
    if (strand->waits() && strand->when() != Time::max() && of(strand->process)) {
      next = std::min(next.value_or(strand->when()), strand->when());
    }
  }
  return next;
}

}  // namespace stagecraft::simulation
