/// Processes are the worker processes of a simulated cluster, and the launcher that puts workers
/// into them.
///
/// The fleet with its places, its admission and its judge of cut links, its bindings, and the actor
/// of each worker process are those of the library. This is the ground on which they stand: it
/// begins processes, lets them find out what happens to them, and ends them.
/// Some runs have workers that the driver starts, as its children. In the others workers come by
/// themselves, and sometimes more of them than there are places. Workers that outlive their drivers
/// come back, as processes of new numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/mirror/left_copies.h"
#include "stagecraft/actors/launch/fleet/fleet.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/launch/worker/worker_host.h"
#include "stagecraft/tests/simulate/network.h"
#include "stagecraft/tests/simulate/port.h"

namespace stagecraft::simulation {

/// Returns the rank that keeps the copies of this rank's states.
[[nodiscard]] inline Rank keeper_of(Rank rank, int ranks) {
  return Rank((rank.value + 1) % ranks);
}

/// Refusal says which of the instructions and allocations of a rank gets no memory.
struct Refusal {
  std::int64_t grants = 0;  ///< that get some before it
  std::size_t least = 0;    ///< others count only if they ask for so many bytes
};

class Processes final : public Launcher, public std::enable_shared_from_this<Processes> {
 public:
  static constexpr std::chrono::milliseconds kSlowest{200};

  /// Views the network. `outlives`: so do workers their drivers.
  Processes(Network& network, int ranks, bool outlives);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() override;

  /// Ends the fleet, and all worker processes that its driver has not given up. Those end by
  /// themselves.
  void end_fleet();

  // ---- faults ---------------------------------------------------------------------------------

  /// Calls `event` when the rank's process has sent so many tensors more to the other's.
  void after_tensors(Rank from, Rank to, int count, Network::Arrive event);

  // Return whether they strike: not a process that has ended, or stands still. A rank may be
  // kDriver where the driver's process is meant.

  /// Kills the process in the rank's place.
  bool kill(Rank rank);
  /// Stops it for so long. Others give up a process that is stopped for longer than
  /// Network::kSilence. `with_clock`: its clock stands still, too.
  bool stop(Rank rank, Clock::Time::duration span, bool with_clock);
  /// Lets its clock jump.
  bool set_clock_ahead(Rank rank, Clock::Time::duration span);
  /// Delays all that the two send each other on these planes for so long.
  bool hold(Rank a, Rank b, const std::vector<Plane>& planes, Clock::Time::duration span);
  /// Breaks the connection of the process with the driver.
  bool break_control(Rank rank);
  /// Breaks the way of tensors between the two.
  bool break_data(Rank from, Rank to);
  /// Lets nothing pass between these ranks and all other processes for so long: `out` from them,
  /// `in` to them.
  bool part(const std::set<Rank>& ranks, bool out, bool in, Clock::Time::duration span);
  /// Refuses memory to the rank once. Replaces an earlier refusal that has not come yet.
  bool refuse_memory(Rank rank, Refusal refusal);
  /// Makes instructions of the rank that begin in this span take up to kSlowest longer each.
  bool slow(Rank rank, Clock::Time::duration span);
  /// Lets a process say what it may not: it has not greeted the driver, has another build, asks for
  /// the place of another, or reports cut ways without a place.
  bool come_as_stranger();
  /// Kills the driver's process.
  bool end_driver();

  /// Lets another driver follow one that was killed. It has new worker processes in all places, or
  /// those that have outlived that one.
  void begin_driver();

  /// Returns whether the driver knows that the rank's place has no worker, after it had one.
  [[nodiscard]] bool is_known_lost(Rank rank) const;
  /// Returns whether the process in the rank's place has ended, or the driver has given it up.
  [[nodiscard]] bool is_lost(Rank rank) const;
  /// Returns whether there is a process in a rank's place that is lost.
  [[nodiscard]] bool has_lost() const;
  /// Returns when faults cease to make messages between the driver and the rank late.
  [[nodiscard]] World::Time messages_late_until(Rank rank) const {
    return network_.messages_late_until(process_of(rank));
  }
  /// Returns whether the process in the rank's place has outlived the driver before, with copies.
  [[nodiscard]] bool has_outlived(Rank rank) const {
    return has_process(rank) && in(rank).has_outlived;
  }
  /// Returns when the last late copy of a state reaches its keeper, for each rank that had one.
  [[nodiscard]] std::map<Rank, World::Time> late_copies() const;
  /// Returns whether a stranger was given a place.
  [[nodiscard]] bool has_let_in_stranger() const { return has_let_in_stranger_; }
  /// Returns the bytes of tensors that have arrived and that nobody has received.
  [[nodiscard]] std::int64_t bytes_waiting() const;
  /// Returns whether the driver was told the cause early enough to wait for it (DR-8).
  [[nodiscard]] bool is_told_in_time(Rank rank) const;
  /// Returns the cause of its end that the driver was told; empty before that.
  [[nodiscard]] const std::string& cause(Rank rank) const { return in(rank).cause; }

  /// Counts an allocation of the process whose strand this is, or an instruction, which asks for
  /// none by itself. Returns whether it gets no memory.
  [[nodiscard]] bool is_refused_memory(std::size_t bytes);

  /// Returns whether workers come by themselves, as the seed draws; else the driver starts them.
  [[nodiscard]] bool workers_come() const { return options_.workers_come; }

  // ---- Launcher -------------------------------------------------------------------------------

  [[nodiscard]] ActorHost& host() const override { return network_.world().host(); }
  void require_fit(const std::vector<RankSetup>&, LastRank) const override {}
  [[nodiscard]] PlanId new_plan_id() override { return PlanId(++last_plan_); }
  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks, LastRank last) override;
  [[nodiscard]] WorkerPlace place(Rank rank) const override;
  [[nodiscard]] PortCounts traffic() const override { return {}; }
  void replace(Rank rank) override;

 private:
  class Child;
  class Ground;

  /// Process is a worker process, also after its end.
  struct Process {
    int place = 0;       ///< that it was started for, or has taken
    std::string worker;  ///< the name in its certificate
    bool has_joined = false;
    bool is_given_up = false;  ///< by the driver, as their connection has ended
    std::optional<Refusal> refusal;
    std::string how;                                                   ///< it has ended, if it has
    std::string cause;                                                 ///< that the driver was told
    World::Time lost = World::Time::max(), told = World::Time::max();  ///< when the driver knew
    World::Time slow_until{};
    /// From the first fault that will end it, until it has ended and is given up.
    Network::Disturbance trouble;
    std::function<void(const std::string& how)> on_end;  ///< of a child
    int driver = 0;                                      ///< the number of the one that it knows
    std::shared_ptr<LeftCopies> left;                    ///< of a process that outlives its drivers
    std::weak_ptr<LeftCopies> lent;  ///< the same, as long as one of its ranks has it
    bool has_outlived = false;       ///< a driver, with copies
    bool is_left_behind = false;     ///< its driver has given it up, and lived on
    std::shared_ptr<Port> port;
    std::shared_ptr<ServedProcess> served;
    AdmissionActor admission;               ///< as it knows it
    std::shared_ptr<PeerNodes::Node> node;  ///< of its connection, at the driver
    std::vector<caf::actor> actors;         ///< of its ranks
  };

  static constexpr ProcessNumber kNobody = -1;

  /// Left is what a process has that comes back.
  struct Left {
    std::shared_ptr<LeftCopies> copies = nullptr;
    ProcessNumber from = kNobody;  ///< the process that it was
  };

  /// Returns the newest process in a rank's place; kNobody before the first.
  [[nodiscard]] ProcessNumber process_of(Rank rank) const {
    return rank == kDriver ? 0 : current_[rank.index()];
  }
  [[nodiscard]] bool has_process(Rank rank) const {
    return process_of(rank) != kNobody && !network_.has_ended(process_of(rank));
  }
  [[nodiscard]] Process& in(Rank rank) { return processes_.at(process_of(rank)); }
  [[nodiscard]] const Process& in(Rank rank) const { return processes_.at(process_of(rank)); }
  [[nodiscard]] std::string name_of(ProcessNumber process) const;

  /// Returns an event that does nothing after the end of the cluster.
  [[nodiscard]] Network::Arrive if_alive(Network::Arrive event) const;

  [[nodiscard]] Fleet& fleet();
  void begin_fleet();
  /// Begins a process that is connected under the name of the worker of this place.
  ProcessNumber connect(int place);
  /// Begins a process that asks for a place. `place`: in whose certificate it comes.
  ProcessNumber begin(const PlaceTurn& turn,
                      bool says_place,
                      std::chrono::milliseconds patience,
                      std::function<void(const std::string& how)> on_end);
  /// Ends the ranks of a process whose driver is gone, and lets it come to the next one.
  void outlive(ProcessNumber number, const std::string& why);
  /// Lets it come, as soon as there is one.
  void come_back(int place, const Left& left);
  /// Lets a worker come by itself for the place, with what it has left there.
  void come(int place, const Left& left);
  /// Returns whether another process was in its place after it: its copies are old.
  [[nodiscard]] bool has_successor(ProcessNumber number) const;
  /// Lets workers come by themselves for a place that calls for one.
  void bring(const PlaceTurn& turn);
  void join(ProcessNumber number, const Join& join, std::chrono::milliseconds patience);
  void has_joined(const WorkerHostActor& host);
  [[nodiscard]] Worker start_rank(ProcessNumber number, Rank rank, std::shared_ptr<Transport> end);
  void end(ProcessNumber number, const std::string& how);
  /// Called before an instruction of the process, on its strand: waits if it is slow.
  void wait_if_slow(ProcessNumber number);
  /// Notes that the process is going to end, or has ended, or that the driver has given it up.
  void trouble(Process& process, ProcessNumber number);

  // These are called when a process finds out something.
  void gave_up(ProcessNumber number);
  void broke(ProcessNumber from, ProcessNumber to);
  void cut(ProcessNumber from, ProcessNumber to);

  Network& network_;
  World& world_;
  const bool outlives_;
  const SpawnOptions options_;
  const std::shared_ptr<Ports> ports_ = std::make_shared<Ports>();
  std::vector<ProcessNumber> current_;  ///< by rank
  std::map<ProcessNumber, Process> processes_;
  std::set<ProcessNumber> staying_;  ///< that may come back, and are not told yet that they should
  std::multimap<int, Left> coming_;  ///< by place: they wait for a driver
  std::shared_ptr<Fleet> fleet_;     ///< of the present driver
  Ground* ground_ = nullptr;         ///< the fleet's
  int drivers_ = 0;                  ///< so far
  ProcessNumber last_process_ = 0;
  std::uint64_t last_plan_ = 0;
  bool has_let_in_stranger_ = false;
};

}  // namespace stagecraft::simulation
