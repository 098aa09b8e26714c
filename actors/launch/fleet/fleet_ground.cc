#include "stagecraft/actors/launch/fleet/fleet_ground.h"

#include <utility>
#include <vector>

#include "stagecraft/actors/launch/fleet/fleet_credentials.h"
#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/base/process/standstill.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft {
namespace {

/// Returns all hosts on which workers may run.
std::vector<Host> hosts_of(const SpawnOptions& options) {
  std::vector<Host> all = options.hosts;
  all.insert(all.end(), options.spares.begin(), options.spares.end());
  return all;
}

class RealGround final : public FleetGround {
 public:
  RealGround(const SpawnOptions& options,
             std::shared_ptr<const Clock> clock,
             std::shared_ptr<const WorkerWay> way)
      : options_(options),
        way_(std::move(way)),
        credentials_(options, std::move(clock)),
        address_(address_for_hosts(options.interface, hosts_of(options))),
        host_(open_control_plane(credentials_.of_driver(),
                                 {.interval = options.heartbeat, .silence = options.silence})) {}

  [[nodiscard]] ActorHost& host() const override { return host_; }

  [[nodiscard]] Places::StoodStill standstills() const override {
    return [record = watch_standstills()](std::chrono::milliseconds span) {
      return record->longest(std::chrono::steady_clock::now(), span);
    };
  }

  [[nodiscard]] std::shared_ptr<DataPort> open_port(const CutLinks& cuts) override {
    return DataPort::open(
        {.bind = any_port_of(address_),
         .shared_memory = MemoryFile::usual_limit(),
         .when_broken = [cuts](const std::string& key, const Error& why) { cuts.broke(key, why); },
         .silence = options_.silence,
         .when_cut = [cuts](const std::string& key,
                            const Error& why) { cuts.cut_from_here(key, why); },
         .when_failed = [cuts](const Error& why) { cuts.port_failed(why); }});
  }

  void admit(AdmissionEvents events) override {
    admission_ = std::make_unique<Admission>(host_, options_, address_, std::move(events));
  }
  void close() override { admission_.reset(); }
  [[nodiscard]] std::string address() const override {
    return host_and_port(address_, admission_->port());
  }
  void tell_address() override { admission_->tell(address()); }

  void renew(const PlaceTurn& turn) override {
    credentials_.renew(turn.place, turn.incarnation == 0);
  }

  [[nodiscard]] WorkerProcessOptions way_to_join(const PlaceTurn& turn) const override {
    return {.host = address_,
            .port = admission_->port(),
            .credentials = credentials_.of_place(turn.place),
            .place = turn.place,
            .incarnation = turn.incarnation,
            .lifeline = kLifeline,
            .heartbeat = {.interval = options_.heartbeat, .silence = options_.silence},
            .patience = options_.join_deadline};
  }

  [[nodiscard]] std::unique_ptr<WorkerChild> start(
      const PlaceTurn& turn,
      std::function<void()> on_let_in,
      std::function<void(const std::string& how)> on_end) override {
    return std::make_unique<ChildProcess>(way_->program(way_to_join(turn), std::move(on_let_in)),
                                          std::move(on_end));
  }

 private:
  const SpawnOptions options_;
  const std::shared_ptr<const WorkerWay> way_;
  FleetCredentials credentials_;
  const std::string address_;  ///< of this host for workers
  ActorHost& host_;
  std::unique_ptr<Admission> admission_;
};

}  // namespace

std::unique_ptr<FleetGround> real_ground(const SpawnOptions& options,
                                         std::shared_ptr<const Clock> clock,
                                         std::shared_ptr<const WorkerWay> way) {
  return std::make_unique<RealGround>(options, std::move(clock), std::move(way));
}

}  // namespace stagecraft
