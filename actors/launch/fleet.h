/// Fleet: the worker processes of one cluster, with the port at which they join. They are started
/// on this host, or by ssh on others, or come by themselves.
///
/// A launcher and its bindings share it. A place is a position among the processes; who stands in
/// it may be replaced, which counts its incarnation up.
/// FL-1: processes are started when they are required first, and all end with the fleet.
/// FL-2: a process from which a tensor was lost on its way here is ended, so that it is named
///       instead of waited for.
/// FL-3: one that comes by itself takes the first place that is awaited; where none is, it is told
///       to ask again (Joined::later).
/// FL-4: workers are started in their turn (start_turns.h).
/// FL-5: a process whose tensors do not reach another that is alive, or that the driver's do not
///       reach, is ended likewise.
/// Any thread may use it; its mutex guards the places, and is not held while anybody is waited for.
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

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/launch/admission.h"
#include "stagecraft/actors/launch/child_process.h"
#include "stagecraft/actors/launch/control_port.h"
#include "stagecraft/actors/launch/fleet_credentials.h"
#include "stagecraft/actors/launch/processor.h"
#include "stagecraft/actors/launch/worker_program.h"
#include "stagecraft/base/standstill.h"
#include "stagecraft/futures/transport/data_port.h"

namespace stagecraft {

/// A worker process that has joined.
struct FleetMember {
  int place = 0;
  std::int64_t incarnation = 0;
  WorkerHostActor host;
  PortAddress port;
  std::int64_t process = 0;  ///< its id there
  std::string host_name;     ///< as it says itself
  ProcessorFacts processor;  ///< before it was held to anything
};

class Fleet : public std::enable_shared_from_this<Fleet> {
 public:
  /// Opens the port. Errors: those of the credentials; UsageFile where no worker program is found;
  ///         ClusterMember when no port can be opened.
  [[nodiscard]] static std::shared_ptr<Fleet> open(const SpawnOptions& options);
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  [[nodiscard]] ActorHost& host() const { return host_; }
  [[nodiscard]] const std::shared_ptr<DataPort>& port() const { return port_; }
  [[nodiscard]] NetworkId next_network() { return NetworkId(++networks_); }

  /// Has places 0 to places - 1 filled, starting who is missing, and waits for them to join.
  /// Errors: ClusterMember when one ends before it has joined; ClusterTimeout.
  void require(int places);

  /// Ends the process of a place and starts another one, and waits for it. Errors: as require.
  void replace(int place);

  /// Errors: ClusterMember when the place is empty, or its process lost.
  [[nodiscard]] FleetMember member(int place) const;
  /// Whose turn it is in a place, with neither process nor address while nobody stands there.
  [[nodiscard]] WorkerPlace who(int place) const;

  /// Holds all processes of this cluster, those of later too, to a capability. Before the first
  /// trainer.
  void hold(const std::string& capability);
  /// To which they are held; empty: to none.
  [[nodiscard]] std::string held() const;
  /// Tells people and the log which ranks compute with other code, once until that changes.
  void tell_processors(const std::vector<NamedProcessor>& ranks);

  /// As Binding::cause_of_end; empty for an incarnation that was replaced.
  [[nodiscard]] std::string cause_of_end(int place, std::int64_t incarnation) const;

  /// Errors: ClusterMember with the cause, and how to go on.
  [[noreturn]] void throw_lost(int place, std::int64_t incarnation) const;

  /// "worker process 4711", "worker process 4711 on node-b".
  [[nodiscard]] std::string name_of(int place) const;

  // What the admission actor has to tell.
  void refused(const std::string& why);
  /// Returns whether the worker has its place now: else it may ask again. Errors: ClusterMember for
  /// one of a place where nobody waits for it.
  [[nodiscard]] bool joined(const Join& join, const WorkerHostActor& host);
  void lost(const caf::actor_addr& host);
  /// Tensors from the worker of a process do not reach the port of a key (keeps FL-5).
  void cut(const caf::node_id& from, const std::string& key, const Error& why);

 private:
  struct Place {
    std::int64_t incarnation = 0;
    std::unique_ptr<ChildProcess> child;
    std::optional<FleetMember> member;
    bool awaited = false;   ///< a worker is there, or is to come
    bool queued = false;    ///< it is to be started when its turn comes (FL-4)
    bool let_in = false;    ///< it was started, and ssh is through
    bool lost = false;      ///< it had joined and its connection has ended
    Deadline lost_at{};     ///< when
    std::string condemned;  ///< why its process was ended, if it was (FL-2)
  };

  explicit Fleet(const SpawnOptions& options);
  /// Who is to be ended, as long as nobody else has come in the place.
  struct Turn {
    int place = 0;
    std::int64_t incarnation = 0;
  };

  /// Keeps FL-2.
  void link_broke(const std::string& key, const Error& why);
  /// Tensors from here do not (keeps FL-5).
  void cut_from_here(const std::string& key, const Error& why);
  /// Ends one when another answers that it is there: one that is dead is named by its own end.
  void condemn_if_there(const Turn& turn, const std::string& why, const FleetMember& other);
  /// Unless the one that it does not reach is ended already: one of the two is enough.
  void condemn(const Turn& turn, const Turn& towards, const std::string& why);
  void end_process(Place& place);
  void wait_for(const std::vector<int>& places);
  void was_let_in(int place, std::int64_t incarnation);
  // These require the mutex.
  /// To people, where workers are elsewhere.
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
  /// Null where nobody of whom it is true is there.
  template <class Condition>
  [[nodiscard]] const FleetMember* find_member(Condition condition) const;

  const SpawnOptions options_;
  const std::shared_ptr<const Standstills> standstills_ = watch_standstills();
  const WorkerProgram program_;
  FleetCredentials credentials_;
  const std::string address_;  ///< of this host, where workers reach it
  ActorHost& host_;
  std::shared_ptr<DataPort> port_;  ///< opened last, as it tells this fleet of broken links
  std::atomic<std::uint64_t> networks_{0};

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Place> places_;  ///< which stay where they are when there are more
  std::string refusal_;       ///< why the last one was not taken in
  std::string held_;          ///< the capability of all
  std::string told_;          ///< of their processors
  /// Once workers were required. Closed first: nobody joins who would be kept no more.
  std::unique_ptr<Admission> admission_;
};

}  // namespace stagecraft
