/// WorkerWay defines how the worker processes of a fleet come to their places. The fleet starts
/// them here or by ssh, or something else starts them and they join by themselves.
///
/// A fleet has one way, which the table in ways.h chooses from its options. A way has no state that
/// changes, except for the hosts of its places (place_hosts.h). Any thread may use it.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/actors/launch/ways/start_turns.h"
#include "stagecraft/actors/launch/worker/worker_process.h"

namespace stagecraft {

class WorkerWay {
 public:
  WorkerWay() = default;
  WorkerWay(const WorkerWay&) = delete;
  WorkerWay& operator=(const WorkerWay&) = delete;
  virtual ~WorkerWay() = default;

  /// Returns whether the fleet starts the workers; otherwise they join by themselves (PC-1).
  [[nodiscard]] virtual bool starts_workers() const = 0;

  /// Returns whether workers may run on other hosts: messages then name their hosts.
  [[nodiscard]] virtual bool is_elsewhere() const = 0;

  /// Checks the number of workers. Errors: UsageArgument if there cannot be this many.
  virtual void require_places(int places) const { static_cast<void>(places); }

  /// Returns the program that starts the worker of a place. `join`: the driver that it joins, its
  /// place, and its credentials, a folder of this host. `on_let_in`: called, on a thread of its
  /// own, when the worker's host has let the program in; never on this host.
  /// Requires: starts_workers().
  /// Errors: those of text_of_member and of WorkerOutput.
  [[nodiscard]] virtual ChildProgram program(WorkerProcessOptions join,
                                             std::function<void()> on_let_in) const;

  /// Returns the places to start now, in ascending order (FL-4).
  [[nodiscard]] virtual std::vector<int> turns(std::span<const StartState> places) const;

  /// Returns " on node-b" for messages; empty for this host, and while it is unknown. `reported`:
  /// the host's name as the worker reports it; empty before that.
  [[nodiscard]] virtual std::string host_text(int place, const std::string& reported) const;

  /// Returns how the worker of a place ended, given how its child process ended
  /// (ChildProcess::end).
  [[nodiscard]] virtual std::string end_text(int place, const std::string& end) const;

  /// Prepares another worker in a place that has lost one. Returns the host to which the place has
  /// moved for it, for people; nothing if it stays where it is.
  virtual std::optional<std::string> prepare(int place) const;

  /// Notes that the host of a place has not taken the worker that was prepared. Returns whether
  /// prepare() would move the place to another.
  [[nodiscard]] virtual bool give_up(int place) const;

  /// Returns how people start a worker, for as long as the fleet waits; empty if they start none.
  /// `join`: as in program().
  [[nodiscard]] virtual std::string start_advice(const WorkerProcessOptions& join) const {
    static_cast<void>(join);
    return "";
  }

  /// Returns the advice about workers that have not joined. `join`: as in program(), for the first
  /// of them.
  [[nodiscard]] virtual std::string late_advice(const WorkerProcessOptions& join) const = 0;
};

}  // namespace stagecraft
