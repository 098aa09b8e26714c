#include "stagecraft/base/process/process_end.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

namespace stagecraft::process_end {
namespace {

/// Never destroyed: parked threads and late destructors of static objects still read it.
struct State {
  std::atomic<pid_t> process{getpid()};
  std::atomic<bool> begun{false};
  std::atomic<int> at_work{0};
  std::mutex mutex;  // guards `hooks`; the handler also waits under it
  std::condition_variable changed;
  std::vector<std::function<void()>> hooks;
};

State& state() {
  static State* const instance = new State;
  return *instance;
}

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): each thread has its own state.
thread_local int depth = 0;  // number of AtWork scopes; 0 in an Elsewhere scope
thread_local bool ends_the_process = false;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

[[noreturn]] void park() {
  for (;;) {
    pause();
  }
}

void leave() {
  State& s = state();
  s.at_work.fetch_sub(1);
  if (s.begun.load()) {
    const std::scoped_lock lock(s.mutex);
    s.changed.notify_all();
  }
}

/// Returns whether this thread must stop. The thread that runs the end continues, and so does a
/// child of fork().
bool has_to_stop() {
  const State& s = state();
  return s.begun.load() && !ends_the_process && s.process.load() == getpid();
}

/// Counts this thread as at work. Either the thread sees that the end has begun, or the handler
/// sees the thread.
void come() {
  state().at_work.fetch_add(1);
  if (has_to_stop()) {
    leave();
    park();
  }
}

void handle_exit() {
  State& s = state();
  if (s.process.load() != getpid() || s.begun.exchange(true)) {
    return;
  }
  ends_the_process = true;
  std::unique_lock lock(s.mutex);
  const std::vector<std::function<void()>> hooks = s.hooks;
  lock.unlock();
  for (const auto& hook : hooks) {
    hook();
  }
  lock.lock();
  const int own = depth > 0 ? 1 : 0;  // a rank may call exit()
  s.changed.wait_for(lock, kLastWait, [&] { return s.at_work.load() <= own; });
}

}  // namespace

void arm() {
  State& s = state();
  const pid_t here = getpid();
  if (s.process.exchange(here) != here) {
    s.at_work.store(depth > 0 ? 1 : 0);  // keeps PE-3: the others were the parent's
  }
  std::atexit(handle_exit);
}

bool begun() {
  return state().begun.load(std::memory_order_relaxed);
}

void gate() {
  if (begun() && depth > 0 && has_to_stop()) {
    leave();
    park();
  }
}

void admit() {
  if (begun() && has_to_stop()) {
    park();
  }
}

void when_it_begins(std::function<void()> work) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  s.hooks.push_back(std::move(work));
}

AtWork::AtWork() {
  if (depth++ == 0) {
    come();
  }
}

AtWork::~AtWork() {
  if (--depth == 0) {
    leave();
  }
}

Elsewhere::Elsewhere() : depth_(std::exchange(depth, 0)) {
  if (depth_ > 0) {
    leave();
  }
}

Elsewhere::~Elsewhere() {
  if (depth_ > 0) {
    come();
    depth = depth_;
  }
}

}  // namespace stagecraft::process_end
