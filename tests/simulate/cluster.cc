#include "stagecraft/tests/simulate/cluster.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/driver/lost_workers.h"
#include "stagecraft/actors/worker/stage_worker.h"

namespace stagecraft::simulation {

using namespace std::chrono_literals;

class SimulatedBinding final : public Binding {
 public:
  SimulatedBinding(std::shared_ptr<Processes> processes, int ranks)
      : processes_(std::move(processes)),
        ends_(std::make_shared<Ends>(Ends{.network = processes_->network_})),
        launched_(static_cast<std::size_t>(ranks)),
        causes_(static_cast<std::size_t>(ranks)) {
    ends_->of_ranks.resize(static_cast<std::size_t>(ranks));
    driver_end_ = std::make_shared<RankEnd>(ends_, kDriver, 0);
    ends_->of_driver = driver_end_;
    processes_->driver_ends_.push_back(driver_end_);
  }

  [[nodiscard]] std::shared_ptr<Transport> driver_end() const override { return driver_end_; }

  [[nodiscard]] Worker launch(RankSetup setup) override {
    const Rank rank = setup.rank();
    const Processes::Place& place = processes_->place_of(rank);
    launched_[rank.index()] = place.incarnation;
    causes_[rank.index()] = place.end->future();
    return processes_->launch(ends_, std::move(setup), shelf_);
  }

  void hand_over(RankShape shape, PlanId, Submission request) override {
    shelf_->put(std::move(shape), request);
  }
  void launch_actors(Rank, Epoch, std::shared_ptr<const ActorTypes>) override {
    throw Error(Errc::Internal, "the simulated trainer has no actors of its own");
  }
  [[nodiscard]] bool was_replaced(Rank rank) const override {
    return processes_->place_of(rank).incarnation != launched_[rank.index()];
  }
  [[nodiscard]] Future<std::string> cause_of_end(Rank rank) const override {
    return causes_[rank.index()];
  }

 private:
  const std::shared_ptr<Processes> processes_;
  const std::shared_ptr<Ends> ends_;
  std::shared_ptr<RankEnd> driver_end_;
  const std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
  std::vector<std::int64_t> launched_;  ///< by rank: the incarnation
  std::vector<Future<std::string>> causes_;
};

namespace {

std::string name_of(Rank rank) {
  return fmt::format("rank {}", rank.value);
}

}  // namespace

Processes::Processes(Network& network, int ranks)
    : network_(network), places_(static_cast<std::size_t>(ranks)) {
  for (Place& place : places_) {
    place.process = ++last_process_;
  }
}

std::unique_ptr<Binding> Processes::bind(int ranks, LastRank) {
  return std::make_unique<SimulatedBinding>(shared_from_this(), ranks);
}

Worker Processes::launch(const std::shared_ptr<Ends>& ends,
                         RankSetup setup,
                         std::shared_ptr<Shelf> shelf) {
  const Rank rank = setup.rank();
  Place& place = place_of(rank);
  if (network_.has_ended(place.process)) {  // as Fleet does
    const Future<std::string> cause = place.end->future();
    const bool known = cause.wait_until(network_.world().clock().now() + kCauseLimit);
    throw Error(Errc::ClusterMember,
                fmt::format("{} of this cluster is lost, as {}",
                            peer_name(rank),
                            known ? cause.get() : "it does not answer"));
  }
  const auto end = std::make_shared<RankEnd>(ends, rank, place.process);
  ends->of_ranks[rank.index()] = end;
  const Worker worker = launch_thread(
      host(), end, std::make_shared<StepValues>(), std::move(setup), std::move(shelf));
  const auto as_handle = [&](const caf::actor& actor) {
    network_.world().own(actor.id(), place.process);
    place.actors.push_back(actor);
    return network_.handle(caf::actor_cast<caf::strong_actor_ptr>(actor), place.process, 0);
  };
  place.transports.push_back(end);
  const auto plan_thread = as_handle(caf::actor_cast<caf::actor>(worker.plan_thread));
  const auto agent = as_handle(caf::actor_cast<caf::actor>(worker.agent));
  return {.plan_thread = caf::actor_cast<PlanActor>(plan_thread),
          .agent = caf::actor_cast<AgentActor>(agent)};
}

WorkerPlace Processes::place(Rank rank) const {
  return {.rank = rank,
          .process = place_of(rank).process,
          .incarnation = place_of(rank).incarnation,
          .address = "simulated",
          .processor = processor_of_this_process()};
}

void Processes::replace(Rank rank) {
  Place& place = place_of(rank);
  if (!network_.has_ended(place.process)) {
    end(rank, "was replaced");
  }
  place = Place{.process = ++last_process_, .incarnation = place.incarnation + 1};
  network_.world().tell("driver", fmt::format("replaces {}", name_of(rank)));
}

bool Processes::kill(Rank rank) {
  if (has_ended(rank)) {
    return false;
  }
  end(rank, fmt::format("process {} was killed", place_of(rank).process));
  return true;
}

bool Processes::stop(Rank rank, Clock::Time::duration span) {
  Place& place = place_of(rank);
  const ProcessNumber process = place.process;
  World& world = network_.world();
  if (has_ended(rank) || world.is_stopped(process)) {
    return false;
  }
  const bool for_good = span > kSilence;
  world.tell(name_of(rank),
             fmt::format("is stopped for {:.3f} s", std::chrono::duration<double>(span).count()));
  network_.stop(process);
  const World::Time until = world.clock().now() + std::min<Clock::Time::duration>(span, kSilence);
  disturb(until);
  world.at(until, [this, rank, process, for_good] {
    if (place_of(rank).process != process || network_.has_ended(process)) {
      return;
    }
    if (for_good) {
      end(rank, fmt::format("process {} fell silent", process));
    } else {
      network_.world().tell(name_of(rank), "is continued");
      network_.resume(process);
    }
  });
  return true;
}

bool Processes::hold(Rank a, Rank b, const std::vector<Plane>& planes, Clock::Time::duration span) {
  const auto process = [this](Rank rank) { return rank == kDriver ? 0 : place_of(rank).process; };
  World& world = network_.world();
  const std::string_view what = planes.size() == 2              ? "what"
                                : planes.front() == Plane::Data ? "the tensors that"
                                                                : "the messages that";
  world.tell(name_of(b),
             fmt::format("and {} hear {} they send each other up to {:.3f} s later",
                         a == kDriver ? "the driver" : name_of(a),
                         what,
                         std::chrono::duration<double>(span).count()));
  for (const Plane plane : planes) {
    network_.hold(process(a), process(b), plane, world.clock().now() + span);
  }
  return true;
}

void Processes::end(Rank rank, const std::string& cause) {
  Place& place = place_of(rank);
  const ProcessNumber process = place.process;
  place.cause = cause;
  network_.world().tell(name_of(rank), cause);
  network_.end(process, [this, rank, process, cause, told = place.end] {
    // Often later than the news itself, and sometimes too late (DR-8).
    World& world = network_.world();
    const auto later = world.random().one_in(2) ? 0ns : world.random().up_to(1500ms);
    if (place_of(rank).process == process) {
      place_of(rank).is_known_lost = true;
      place_of(rank).is_told_in_time = later < kCauseLimit;
    }
    disturb(world.clock().now() + later);
    world.at(world.clock().now() + later, [told, cause] { (void)told->set_value(cause); });
  });
  const Error why(Errc::ClusterClosed, "the process has ended");
  for (const std::shared_ptr<RankEnd>& end : place.transports) {
    end->close(why);
  }
  for (const caf::actor& actor : place.actors) {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
  }
}

void Processes::disturb(World::Time until) {
  for (const Plane plane : {Plane::Control, Plane::Data}) {
    network_.disturb(plane, until);
  }
}

bool Processes::has_lost() const {
  return std::ranges::any_of(
      places_, [this](const Place& place) { return network_.has_ended(place.process); });
}

std::int64_t Processes::bytes_waiting() const {
  std::int64_t bytes = 0;
  for (const std::weak_ptr<RankEnd>& weak : driver_ends_) {
    const std::shared_ptr<RankEnd> end = weak.lock();
    bytes += end == nullptr ? 0 : end->bytes_waiting();
  }
  for (const Place& place : places_) {
    for (const std::shared_ptr<RankEnd>& end : place.transports) {
      bytes += end->bytes_waiting();
    }
  }
  return bytes;
}

}  // namespace stagecraft::simulation
