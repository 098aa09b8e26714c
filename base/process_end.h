/// process_end: what becomes of threads of ours that are still running when the process ends.
///
/// When main() returns, or somebody calls exit(), the static objects of every library are destroyed
/// while other threads go on. A rank that runs its plan meanwhile calls into a LibTorch that is
/// half gone. So a thread of ours is *at work* while it may touch LibTorch, and passes gates; once
/// the end has begun a gate is where it stops for good.
///
///   exit() -> handler: the end has begun -> nobody is at work any more, or kLastWait has passed
///          -> static objects are destroyed
///
/// PE-1: when the end has begun nobody comes to work, and whoever reaches a gate is parked: the
///       thread stays where it is, with what it holds, until the system takes the process away.
/// PE-2: the process ends as its program ends it: exit status, handlers and signals are the
///       program's own.
/// PE-3: in a child of fork() none of the parent's threads exist, so nothing is waited for there,
///       until the child itself calls arm(): then for threads of its own.
#pragma once

#include <chrono>
#include <functional>

namespace stagecraft::process_end {

/// Longest time that the end of the process waits for threads at work; an operator is shorter.
inline constexpr std::chrono::seconds kLastWait{10};

/// Called before threads are made. Has the handler run at exit, before the static objects that
/// exist now are destroyed. LibTorch makes some of its own when they are first used, so this is
/// called again when new code may have run: after a rank's first steps. Cost: one entry in the
/// process's list of exit handlers.
void arm();

[[nodiscard]] bool begun();

/// Parks the calling thread when the end has begun and the thread is at work; else returns.
void gate();

/// For threads of the program, where they ask for something that our threads do: parks the calling
/// thread when the end has begun, as nobody will answer, unless it is the one that called exit().
void admit();

/// Called once, when the end begins, before anybody is waited for: installs more gates.
void when_it_begins(std::function<void()> work);

/// While one lives, this thread may touch LibTorch. Scopes nest. Parks the thread when the end has
/// begun.
class AtWork {
 public:
  AtWork();
  ~AtWork();
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;
};

/// While one lives, a thread at work is not: it waits for others, or runs code of the user's. Ends
/// in a gate.
class Elsewhere {
 public:
  Elsewhere();
  ~Elsewhere();
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

 private:
  int depth_;  ///< of the scopes it interrupts
};

}  // namespace stagecraft::process_end
