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
#include "stagecraft/tests/simulate/network.h"
#include "stagecraft/tests/simulate/rank_end.h"

namespace stagecraft::simulation {

class Processes final : public Launcher, public std::enable_shared_from_this<Processes> {
 public:
  /// Views the network.
  Processes(Network& network, int ranks);

  // ---- faults ---------------------------------------------------------------------------------

  // Return whether they strike: not a process that has ended, or stands still. A rank may be
  // kDriver where the driver's process is meant.

  /// Kills the process in the rank's place.
  bool kill(Rank rank);
  /// Stops it for so long. Others give up a process that is stopped for longer than
  /// Network::kSilence.
  bool stop(Rank rank, Clock::Time::duration span);
  /// Delays all that the two send each other for so long.
  bool hold(Rank a, Rank b, Clock::Time::duration span);
  /// Breaks the connection of the process with the driver.
  bool break_control(Rank rank);
  /// Breaks the way of tensors between the two.
  bool break_data(Rank from, Rank to);
  /// Lets nothing pass between these ranks and all other processes for so long: `out` from them,
  /// `in` to them.
  bool part(const std::set<Rank>& ranks, bool out, bool in, Clock::Time::duration span);
  /// Kills the driver's process. Its successor has new worker processes in all places.
  bool end_driver();

  /// Returns whether the driver has been told that the rank's process has ended.
  [[nodiscard]] bool is_known_lost(Rank rank) const { return in(rank).is_given_up; }
  /// Returns whether the process in the rank's place has ended, or the driver has given it up.
  [[nodiscard]] bool is_lost(Rank rank) const {
    return network_.has_ended(process_of(rank)) || is_known_lost(rank);
  }
  /// Returns the cause of its end that the driver is told; empty before that.
  [[nodiscard]] const std::string& cause(Rank rank) const { return in(rank).cause; }

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
    std::string how;            ///< it has ended, if it has
    std::string cause;          ///< that the driver was told
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

  void begin(Rank rank, std::int64_t incarnation);
  [[nodiscard]] Worker launch(const std::shared_ptr<Ends>& ends, RankSetup setup);
  [[nodiscard]] Worker begin_worker(ProcessNumber number,
                                    const std::shared_ptr<Ends>& ends,
                                    RankSetup setup);
  void end(ProcessNumber number, const std::string& how);
  void tell_cause(ProcessNumber number, const std::string& cause, Clock::Time::duration later);

  // What processes find out.
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
  ProcessNumber last_process_ = 0;
  std::uint64_t last_plan_ = 0;
};

}  // namespace stagecraft::simulation
