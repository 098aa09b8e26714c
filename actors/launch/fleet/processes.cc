#include "stagecraft/actors/launch/fleet/processes.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/executor/setup/setup_wire.h"
#include "stagecraft/actors/launch/fleet/fleet.h"
#include "stagecraft/actors/launch/fleet/process_binding.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/actors/launch/ways/place_hosts.h"
#include "stagecraft/actors/launch/ways/rank_processes.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

class ProcessLauncher final : public Launcher {
 public:
  explicit ProcessLauncher(const SpawnOptions& options)
      : options_(options), fleet_(std::make_shared<Fleet>(options)) {}

  [[nodiscard]] ActorHost& host() const override { return fleet_->host(); }

  void require_fit(const std::vector<RankSetup>& setups, LastRank last) const override {
    std::vector<std::string> all;
    for (const RankSetup& setup : setups) {
      const bool here = last == LastRank::Here && &setup == &setups.back();
      if (!here && lives_elsewhere(options_, setup.rank())) {
        for (const std::string& one : obstacles(setup)) {
          all.push_back(fmt::format("rank {}: {}", setup.rank().value, one));
        }
      }
    }
    if (!all.empty()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("this cannot run in worker processes: {}; run these ranks as threads "
                              "(--workers threads; in a program: Cluster::local, "
                              "SpawnOptions::local_ranks), or do without",
                              fmt::join(all, "; ")));
    }
  }

  /// Holds all processes to the widest capability that they and this process have.
  void hold_to_common(int ranks) {
    const int places = places_for(options_, ranks);
    fleet_->require(places);
    std::string narrowest = processor_of_this_process().capability;
    for (int place = 0; place < places; ++place) {
      const std::string theirs = fleet_->member(place).processor.capability;
      narrowest = can_be_held(theirs, narrowest) ? narrowest : theirs;
    }
    hold_this_process(narrowest);
    fleet_->processors().hold(narrowest);
  }

  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks, LastRank last) override {
    return bind_to_processes(fleet_, options_, ranks, last);
  }

  [[nodiscard]] WorkerPlace place(Rank rank) const override {
    if (!lives_elsewhere(options_, rank)) {
      return ThreadLauncher().place(rank);
    }
    WorkerPlace place = fleet_->who(place_in(options_, rank));
    place.rank = rank;
    return place;
  }

  [[nodiscard]] PortCounts traffic() const override { return fleet_->port()->counts(); }

  void replace(Rank rank) override {
    if (!lives_elsewhere(options_, rank)) {
      ThreadLauncher().replace(rank);
    }
    fleet_->replace(place_in(options_, rank));
  }

 private:
  const SpawnOptions options_;
  const std::shared_ptr<Fleet> fleet_;
};

void check(const SpawnOptions& options) {
  if (options.ranks_per_process < 1 || options.local_ranks < 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected at least 1 rank per process and 0 or more local ranks, found "
                            "{} and {}",
                            options.ranks_per_process,
                            options.local_ranks));
  }
  check_spares(options.hosts, options.spares);
  check_heartbeat({.interval = options.heartbeat, .silence = options.silence});
}

}  // namespace

std::shared_ptr<Launcher> launch_processes(const SpawnOptions& options, int ranks) {
  check(options);
  const auto launcher = std::make_shared<ProcessLauncher>(options);
  if (options.processor == ProcessorChoice::Common) {
    launcher->hold_to_common(ranks);
  }
  return launcher;
}

}  // namespace stagecraft
