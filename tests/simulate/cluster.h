/// Processes are the worker processes of a simulated cluster, one for each rank, and the launcher
/// that puts workers into them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/tests/simulate/network.h"
#include "stagecraft/tests/simulate/rank_end.h"

namespace stagecraft::simulation {

class Processes final : public Launcher, public std::enable_shared_from_this<Processes> {
 public:
  Processes(Network& network, int ranks);

  // ---- faults ---------------------------------------------------------------------------------

  // Return whether they strike: not a process that has ended, or stands still.

  /// Kills the process in the rank's place.
  bool kill(Rank rank);
  /// Stops it for so long. The driver gives up a process that is stopped for longer than kSilence.
  bool stop(Rank rank, Clock::Time::duration span);
  /// Delays all that the two send each other on these planes for so long.
  bool hold(Rank a, Rank b, const std::vector<Plane>& planes, Clock::Time::duration span);

  /// Returns whether the driver has been told that the rank's process has ended.
  [[nodiscard]] bool is_known_lost(Rank rank) const { return place_of(rank).is_known_lost; }
  /// Returns whether the process in the rank's place has ended.
  [[nodiscard]] bool has_ended(Rank rank) const {
    return network_.has_ended(place_of(rank).process);
  }
  /// Returns whether a process has ended in whose place there is no other yet.
  [[nodiscard]] bool has_lost() const;
  /// Returns the bytes of tensors that have arrived and that nobody has received.
  [[nodiscard]] std::int64_t bytes_waiting() const;
  /// Returns whether the driver is told the cause early enough to wait for it (DR-8).
  [[nodiscard]] bool is_told_in_time(Rank rank) const { return place_of(rank).is_told_in_time; }
  /// Returns why it has ended, as the driver is told.
  [[nodiscard]] const std::string& cause(Rank rank) const { return place_of(rank).cause; }

  // ---- Launcher -------------------------------------------------------------------------------

  [[nodiscard]] ActorHost& host() const override { return network_.world().host(); }
  void require_fit(const std::vector<RankSetup>&, LastRank) const override {}
  [[nodiscard]] PlanId new_plan_id() override { return PlanId(++last_plan_); }
  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks, LastRank last) override;
  [[nodiscard]] WorkerPlace place(Rank rank) const override;
  [[nodiscard]] PortCounts traffic() const override { return {}; }
  void replace(Rank rank) override;

  static constexpr std::chrono::seconds kSilence{10};

 private:
  friend class SimulatedBinding;

  /// Place is a rank's place, with the process that is in it.
  struct Place {
    ProcessNumber process = 0;
    std::int64_t incarnation = 0;
    bool is_known_lost = false, is_told_in_time = false;
    std::string cause;
    std::shared_ptr<Promise<std::string>> end = std::make_shared<Promise<std::string>>();
    std::vector<caf::actor> actors;
    std::vector<std::shared_ptr<RankEnd>> transports;
  };

  [[nodiscard]] Place& place_of(Rank rank) { return places_[rank.index()]; }
  [[nodiscard]] const Place& place_of(Rank rank) const { return places_[rank.index()]; }
  /// `shelf`: has what is handed over to the worker later.
  [[nodiscard]] Worker launch(const std::shared_ptr<Ends>& ends,
                              RankSetup setup,
                              std::shared_ptr<Shelf> shelf);
  void end(Rank rank, const std::string& cause);
  void disturb(World::Time until);

  Network& network_;
  std::vector<Place> places_;
  std::vector<std::weak_ptr<RankEnd>> driver_ends_;  ///< of all trainers so far
  ProcessNumber last_process_ = 0;
  std::uint64_t last_plan_ = 0;
};

}  // namespace stagecraft::simulation
