/// Processes are the worker processes of a simulated cluster, one for each rank, and the launcher
/// that puts workers into them.
///
/// They do what worker processes and the fleet do when connections end (WP-1, WP-2, WP-3, CUT-1,
/// CUT-2):
///   a process that has lost its driver, or a tensor on its way to it, ends itself
///   a process whose tensors do not reach another one says so, and the driver ends it if the other
///     one answers
///   the driver gives up a process with their connection; it may live on, until it finds out
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/tests/simulate/network.h"
#include "stagecraft/tests/simulate/rank_end.h"

namespace stagecraft::simulation {

class Processes final : public Launcher, public std::enable_shared_from_this<Processes> {
 public:
  static constexpr std::chrono::milliseconds kSlowest{200};

  /// Views the network.
  Processes(Network& network, int ranks);
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  /// Ends all worker processes.
  ~Processes() override;

  // ---- faults ---------------------------------------------------------------------------------

  // Return whether they strike: not a process that has ended, or stands still. A rank may be
  // kDriver where the driver's process is meant.

  /// Kills the process in the rank's place.
  bool kill(Rank rank);
  /// Stops it for so long. Others give up a process that is stopped for longer than
  /// Network::kSilence.
  bool stop(Rank rank, Clock::Time::duration span);
  /// Delays all that the two send each other on these planes for so long.
  bool hold(Rank a, Rank b, const std::vector<Plane>& planes, Clock::Time::duration span);
  /// Breaks the connection of the process with the driver.
  bool break_control(Rank rank);
  /// Breaks the way of tensors between the two.
  bool break_data(Rank from, Rank to);
  /// Lets nothing pass between these ranks and all other processes for so long: `out` from them,
  /// `in` to them.
  bool part(const std::set<Rank>& ranks, bool out, bool in, Clock::Time::duration span);
  /// Refuses memory to the rank once, after so many of its instructions and allocations. Replaces
  /// an earlier refusal that has not come yet.
  bool refuse_memory(Rank rank, int grants);
  /// Makes instructions of the rank that begin in this span take up to kSlowest longer each.
  bool slow(Rank rank, Clock::Time::duration span);
  /// Kills the driver's process.
  bool end_driver();

  /// Lets another driver follow one that was killed. It has new worker processes in all places.
  void begin_driver();

  /// Returns whether the driver has been told that the rank's process has ended.
  [[nodiscard]] bool is_known_lost(Rank rank) const { return in(rank).is_given_up; }
  /// Returns whether the process in the rank's place has ended, or the driver has given it up.
  [[nodiscard]] bool is_lost(Rank rank) const {
    return network_.has_ended(process_of(rank)) || is_known_lost(rank);
  }
  /// Returns whether there is a process in a rank's place that is lost.
  [[nodiscard]] bool has_lost() const;
  /// Returns the bytes of tensors that have arrived and that nobody has received.
  [[nodiscard]] std::int64_t bytes_waiting() const;
  /// Returns whether the driver was told the cause early enough to wait for it (DR-8).
  [[nodiscard]] bool is_told_in_time(Rank rank) const;
  /// Returns the cause of its end that the driver was told; empty before that.
  [[nodiscard]] const std::string& cause(Rank rank) const { return in(rank).cause; }

  /// Counts an instruction or an allocation of the process whose strand this is. Returns whether it
  /// gets no memory.
  [[nodiscard]] bool is_refused_memory();
  /// Called before an instruction of the rank, on its thread: waits if it is slow.
  void wait_if_slow(Rank rank);

  // ---- Launcher -------------------------------------------------------------------------------

  [[nodiscard]] ActorHost& host() const override { return network_.world().host(); }
  void require_fit(const std::vector<RankSetup>&, LastRank) const override {}
  [[nodiscard]] PlanId new_plan_id() override { return PlanId(++last_plan_); }
  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks, LastRank last) override;
  [[nodiscard]] WorkerPlace place(Rank rank) const override;
  [[nodiscard]] PortCounts traffic() const override { return {}; }
  void replace(Rank rank) override;

 private:
  friend class SimulatedBinding;

  /// Place is a rank's place, with the process that is in it.
  struct Place {
    ProcessNumber process = 0;
    std::int64_t incarnation = 0;
  };

  /// Process is a worker process, also after its end.
  struct Process {
    Rank rank;
    bool is_given_up = false;  ///< by the driver, as their connection has ended
    bool is_condemned = false;
    bool is_forgotten = false;  ///< no data port takes its tensors any more: another has its place
    std::optional<int> grants;  ///< instructions and allocations before the one that fails
    std::string how;            ///< it has ended, if it has
    std::string cause;          ///< that the driver was told
    World::Time lost = World::Time::max(), told = World::Time::max();  ///< when the driver knew
    World::Time slow_until{};
    /// From the first fault that will end it, until it has ended and is given up.
    Network::Disturbance trouble;
    std::shared_ptr<Promise<std::string>> end = std::make_shared<Promise<std::string>>();
    std::vector<caf::actor> actors;
    std::vector<std::shared_ptr<RankEnd>> transports;
  };

  [[nodiscard]] ProcessNumber process_of(Rank rank) const {
    return rank == kDriver ? 0 : places_[rank.index()].process;
  }
  [[nodiscard]] Process& in(Rank rank) { return processes_.at(process_of(rank)); }
  [[nodiscard]] const Process& in(Rank rank) const { return processes_.at(process_of(rank)); }
  [[nodiscard]] std::string name_of(ProcessNumber process) const;

  /// Returns an event that does nothing after the end of the cluster.
  [[nodiscard]] Network::Arrive if_alive(Network::Arrive event) const;
  void begin(Rank rank, std::int64_t incarnation);
  /// `shelf`: has what is handed over to the worker later.
  [[nodiscard]] Worker launch(const std::shared_ptr<Ends>& ends,
                              RankSetup setup,
                              std::shared_ptr<Shelf> shelf);
  [[nodiscard]] Worker begin_worker(ProcessNumber number,
                                    const std::shared_ptr<Ends>& ends,
                                    RankSetup setup,
                                    std::shared_ptr<Shelf> shelf);
  void end(ProcessNumber number, const std::string& how);
  /// Notes that the process is going to end, or has ended, or that the driver has given it up.
  void trouble(Process& process, ProcessNumber number);
  void tell_cause(ProcessNumber number, const std::string& cause, Clock::Time::duration later);

  // These are called when a process finds out something.
  void gave_up(ProcessNumber number);
  void lost_driver(ProcessNumber number);
  void broke(ProcessNumber from, ProcessNumber to);
  void cut(ProcessNumber from, ProcessNumber to);
  void condemn_if_there(ProcessNumber number, ProcessNumber other, const std::string& why);
  void condemn(ProcessNumber number, const std::string& why);

  Network& network_;
  World& world_;
  std::vector<Place> places_;  ///< by rank
  std::map<ProcessNumber, Process> processes_;
  std::vector<std::weak_ptr<RankEnd>> driver_ends_;  ///< of all trainers of this driver so far
  ProcessNumber last_process_ = 0;
  std::uint64_t last_plan_ = 0;
};

}  // namespace stagecraft::simulation
