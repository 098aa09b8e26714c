/// Fleet: the worker processes of one cluster, with the port at which they join. The fleet starts
/// them on this host, or by ssh on others, or they come by themselves.
///
/// A launcher and its bindings share it. A place is a position among the processes. The process in
/// a place may be replaced, which increments the incarnation.
/// FL-1: processes start when they are first required, and all end with the fleet.
/// FL-2: a process that lost a tensor on its way here is ended, so that its loss is reported by
///       name and no rank waits for the tensor.
/// FL-3: a worker that comes by itself takes the first place that is awaited; if there is none, it
///       is told to ask again (Joined::later).
/// FL-4: workers start in turns (start_turns.h).
/// FL-5: a process is ended in the same way if its tensors do not reach another process that is
///       alive, or if the driver's tensors do not reach it.
/// Any thread may use it. Its mutex guards the places, and is not held during a wait.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/launch/fleet/admission.h"
#include "stagecraft/actors/launch/fleet/fleet_credentials.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/base/process/standstill.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

/// A worker process that has joined.
struct FleetMember {
  int place = 0;
  std::int64_t incarnation = 0;
  WorkerHostActor host;
  PortAddress port;
  std::int64_t process = 0;  ///< its id on its host
  std::string host_name;     ///< as the worker reports it
  ProcessorFacts processor;  ///< before it was held to a capability
};

class Fleet : public std::enable_shared_from_this<Fleet> {
 public:
  /// Opens the port. Errors: those of the credentials; UsageFile if no worker program is found;
  /// ClusterMember if no port can be opened.
  [[nodiscard]] static std::shared_ptr<Fleet> open(const SpawnOptions& options);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  [[nodiscard]] ActorHost& host() const { return host_; }
  [[nodiscard]] const std::shared_ptr<DataPort>& port() const { return port_; }
  [[nodiscard]] NetworkId next_network() { return NetworkId(++networks_); }

  /// Fills places 0 to places - 1: starts the missing workers, and waits for them to join.
  /// Errors: ClusterMember if one ends before it has joined; ClusterTimeout.
  void require(int places);

  /// Ends the process of a place, starts another one, and waits for it. Errors: as require.
  void replace(int place);

  /// Errors: ClusterMember if the place is empty, or its process lost.
  [[nodiscard]] FleetMember member(int place) const;
  /// Returns the current worker of a place; without process and address while there is none.
  [[nodiscard]] WorkerPlace who(int place) const;

  /// Holds all processes of this cluster, also later ones, to a capability. Call it before the
  /// first trainer.
  void hold(const std::string& capability);
  /// Returns that capability; empty if there is none.
  [[nodiscard]] std::string held() const;
  /// Tells people and the log which ranks compute with other code, once until that changes.
  void tell_processors(const std::vector<NamedProcessor>& ranks);

  /// Does what Binding::cause_of_end does; empty for an incarnation that was replaced.
  [[nodiscard]] std::string cause_of_end(int place, std::int64_t incarnation) const;

  /// Errors: ClusterMember with the cause, and how to continue.
  [[noreturn]] void throw_lost(int place, std::int64_t incarnation) const;

  /// Returns "worker process 4711", or "worker process 4711 on node-b".
  [[nodiscard]] std::string name_of(int place) const;

  // Called by the admission actor.
  void refused(const std::string& why);
  /// Returns whether the worker has its place now; if not, it may ask again. Errors: ClusterMember
  /// for a worker of a place that awaits none.
  [[nodiscard]] bool joined(const Join& join, const WorkerHostActor& host);
  void lost(const caf::actor_addr& host);
  /// Called when tensors from the worker of a process do not reach the port of a key (keeps FL-5).
  void cut(const caf::node_id& from, const std::string& key, const Error& why);

 private:
  struct Place {
    std::int64_t incarnation = 0;
    std::unique_ptr<ChildProcess> child;
    std::optional<FleetMember> member;
    bool awaited = false;   ///< a worker is there, or will come
    bool queued = false;    ///< it starts when its turn comes (FL-4)
    bool let_in = false;    ///< it was started, and ssh has connected
    bool lost = false;      ///< it had joined and its connection has ended
    Deadline lost_at{};     ///< when
    std::string condemned;  ///< why its process was ended, or empty (FL-2)
  };

  explicit Fleet(const SpawnOptions& options);
  /// The process to end, unless another has taken its place.
  struct Turn {
    int place = 0;
    std::int64_t incarnation = 0;
  };

  /// Keeps FL-2.
  void link_broke(const std::string& key, const Error& why);
  /// Called when tensors from here do not arrive (keeps FL-5).
  void cut_from_here(const std::string& key, const Error& why);
  /// Ends a process if `other` answers that it is there. A dead `other` is reported by its own end
  /// instead.
  void condemn_if_there(const Turn& turn, const std::string& why, const FleetMember& other);
  /// Ends a process, unless the one that it does not reach has been ended: one of the two is
  /// enough.
  void condemn(const Turn& turn, const Turn& towards, const std::string& why);
  void end_process(Place& place);
  void wait_for(const std::vector<int>& places);
  void was_let_in(int place, std::int64_t incarnation);
  // The following functions require the mutex.
  /// Tells people, if workers run elsewhere.
  void tell(const std::string& line) const;
  void call_for(int place);
  void start(int place);
  void start_those_in_turn();
  void tell_address();
  [[noreturn]] void throw_missing(const std::vector<int>& missing) const;
  [[nodiscard]] std::string tell_missing(const std::vector<int>& missing) const;
  [[nodiscard]] static bool has_ended(const Place& place);
  [[nodiscard]] std::int64_t process_id(const Place& place) const;
  [[nodiscard]] std::string tell_process(int place) const;
  [[nodiscard]] std::vector<int> missing_of(const std::vector<int>& places) const;
  [[nodiscard]] int free_place() const;
  /// Returns null if no member fulfills the condition.
  template <class Condition>
  [[nodiscard]] const FleetMember* find_member(Condition condition) const;

  const SpawnOptions options_;
  const std::shared_ptr<const Standstills> standstills_ = watch_standstills();
  const WorkerProgram program_;
  FleetCredentials credentials_;
  const std::string address_;  ///< address of this host for workers
  ActorHost& host_;
  std::shared_ptr<DataPort> port_;  ///< opened last, as it reports broken links to this fleet
  std::atomic<std::uint64_t> networks_{0};

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Place> places_;  ///< a deque: entries stay in place when it grows
  std::string refusal_;       ///< why the last worker was not admitted
  std::string held_;          ///< the capability of all
  std::string told_;          ///< the last report about their processors
  /// Made once workers were required. Closed first: the fleet would not keep a worker that joins
  /// now.
  std::unique_ptr<Admission> admission_;
};

}  // namespace stagecraft
