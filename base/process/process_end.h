/// process_end stops our threads that still run when the process ends.
///
/// When main() returns or a thread calls exit(), the static objects of every library are destroyed
/// while other threads continue. A rank that runs its plan at that time calls into a half-destroyed
/// LibTorch. So each of our threads is *at work* while it may touch LibTorch, and passes gates.
/// After the end has begun, a gate stops the thread for good.
///
///   exit() -> handler: the end has begun -> no thread is at work, or kLastWait has passed
///          -> static objects are destroyed
///
/// PE-1: after the end has begun no thread starts work, and a thread that reaches a gate is parked:
///       it stays there, with everything it holds, until the system removes the process.
/// PE-2: the program decides how its process ends: exit status, handlers and signals are its own.
/// PE-3: a child of fork() has none of the parent's threads, so its end waits for nothing. After
///       the child itself calls arm(), its end waits for the child's own threads.
#pragma once

#include <chrono>
#include <functional>

namespace stagecraft::process_end {

/// The longest time that the end of the process waits for threads at work. An operator is shorter.
inline constexpr std::chrono::seconds kLastWait{10};

/// Registers the handler, which runs at exit before the static objects that exist now are
/// destroyed. Call it before threads are made. LibTorch makes some static objects on first use, so
/// call it again after new code may have run, for example after a rank's first steps. Cost: one
/// entry in the process's list of exit handlers.
void arm();

[[nodiscard]] bool begun();

/// Parks the calling thread if the end has begun and the thread is at work; else returns.
void gate();

/// Parks the calling thread if the end has begun, because no thread will answer. The thread that
/// called exit() passes. Threads of the program call it before they ask our threads for something.
void admit();

/// Registers `work`, which runs once when the end begins, before the wait: it installs more gates.
void when_it_begins(std::function<void()> work);

/// While an AtWork exists, its thread may touch LibTorch. Scopes nest. The constructor parks the
/// thread if the end has begun.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};

/// While an Elsewhere exists, its thread is not at work: it waits for others or runs code of the
/// user. The destructor is a gate.
class Elsewhere {
 public:
  Elsewhere();
  ~Elsewhere();
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

 private:
  int depth_;  ///< nesting depth of the AtWork scopes that it interrupts
};

}  // namespace stagecraft::process_end
