#include "stagecraft/tests/simulate/cluster.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
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
    launched_[rank.index()] = processes_->place(rank).incarnation;
    causes_[rank.index()] = processes_->in(rank).end->future();
    return processes_->launch(ends_, std::move(setup), shelf_);
  }

  void hand_over(RankShape shape, PlanId, Submission request) override {
    shelf_->put(std::move(shape), request);
  }
  void launch_actors(Rank, Epoch, std::shared_ptr<const ActorTypes>) override {
    throw Error(Errc::Internal, "the simulated trainer has no actors of its own");
  }
  [[nodiscard]] bool was_replaced(Rank rank) const override {
    return processes_->place(rank).incarnation != launched_[rank.index()];
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

std::string name_of_rank(Rank rank) {
  return rank == kDriver ? "driver" : fmt::format("rank {}", rank.value);
}

double seconds(Clock::Time::duration span) {
  return std::chrono::duration<double>(span).count();
}

}  // namespace

Processes::Processes(Network& network, int ranks)
    : network_(network), world_(network.world()), places_(static_cast<std::size_t>(ranks)) {
  network_.report_to({.gave_up = [this](ProcessNumber process) { gave_up(process); },
                      .lost_driver = [this](ProcessNumber process) { lost_driver(process); },
                      .broke = [this](ProcessNumber from, ProcessNumber to) { broke(from, to); },
                      .cut = [this](ProcessNumber from, ProcessNumber to) { cut(from, to); }});
  for (int r = 0; r < ranks; ++r) {
    begin(Rank(r), 0);
  }
}

Processes::~Processes() {
  network_.report_to({});
  for (const auto& [number, process] : processes_) {
    if (!network_.has_ended(number)) {
      end(number, fmt::format("process {} ended with its cluster", number));
    }
  }
}

Network::Arrive Processes::if_alive(Network::Arrive event) const {
  return [alive = weak_from_this(), event = std::move(event)] {
    if (!alive.expired()) {
      event();
    }
  };
}

void Processes::begin(Rank rank, std::int64_t incarnation) {
  places_[rank.index()] = {.process = ++last_process_, .incarnation = incarnation};
  processes_[last_process_].rank = rank;
  network_.begin(last_process_);
}

std::string Processes::name_of(ProcessNumber process) const {
  return name_of_rank(process == 0 ? kDriver : processes_.at(process).rank);
}

// ---- the launcher -------------------------------------------------------------------------------

std::unique_ptr<Binding> Processes::bind(int ranks, LastRank) {
  return std::make_unique<SimulatedBinding>(shared_from_this(), ranks);
}

/// Asks the process to begin the worker, as a fleet's binding does.
Worker Processes::launch(const std::shared_ptr<Ends>& ends,
                         RankSetup setup,
                         std::shared_ptr<Shelf> shelf) {
  const Rank rank = setup.rank();
  const ProcessNumber number = process_of(rank);
  const Process& process = in(rank);
  const auto answer = std::make_shared<std::optional<Worker>>();
  network_.send(0,
                number,
                Plane::Control,
                if_alive([this, number, ends, answer, setup = std::move(setup), shelf]() mutable {
                  network_.send(
                      number,
                      0,
                      Plane::Control,
                      [answer, worker = begin_worker(number, ends, std::move(setup), shelf)] {
                        *answer = worker;
                      });
                }));
  std::mutex nobody;  // else has it (BT-1)
  std::unique_lock lock(nobody);
  std::condition_variable changed;
  (void)Clock::current()->wait_until(changed, lock, world_.clock().now() + 30s, [&] {
    return answer->has_value() || process.is_given_up;
  });
  if (*answer) {
    return **answer;
  }
  const Future<std::string> cause = process.end->future();
  const bool known = cause.wait_until(world_.clock().now() + kCauseLimit);
  throw Error(Errc::ClusterMember,
              fmt::format("{} of this cluster is lost, as {}",
                          peer_name(rank),
                          known ? cause.get() : "it does not answer"));
}

Worker Processes::begin_worker(ProcessNumber number,
                               const std::shared_ptr<Ends>& ends,
                               RankSetup setup,
                               std::shared_ptr<Shelf> shelf) {
  Process& process = processes_.at(number);
  const auto end = std::make_shared<RankEnd>(ends, process.rank, number);
  if (process_of(process.rank) == number) {  // not a late order to a process that was replaced
    ends->of_ranks[process.rank.index()] = end;
  }
  for (auto& [other, old] : processes_) {  // now that all are told the new place
    old.is_forgotten = old.is_forgotten || (old.rank == process.rank && other < number);
  }
  const Worker worker = launch_thread(
      host(), end, std::make_shared<StepValues>(), std::move(setup), std::move(shelf));
  const auto as_handle = [&](const caf::actor& actor) {
    world_.own(actor.id(), number);
    process.actors.push_back(actor);
    return network_.handle(caf::actor_cast<caf::strong_actor_ptr>(actor), number, 0);
  };
  process.transports.push_back(end);
  const auto plan_thread = as_handle(caf::actor_cast<caf::actor>(worker.plan_thread));
  const auto agent = as_handle(caf::actor_cast<caf::actor>(worker.agent));
  return {.plan_thread = caf::actor_cast<PlanActor>(plan_thread),
          .agent = caf::actor_cast<AgentActor>(agent)};
}

WorkerPlace Processes::place(Rank rank) const {
  const Place& place = places_[rank.index()];
  return {.rank = rank,
          .process = place.process,
          .incarnation = place.incarnation,
          .address = "simulated",
          .processor = processor_of_this_process()};
}

void Processes::replace(Rank rank) {
  const ProcessNumber number = process_of(rank);
  // A child of the driver's ends at once. One that has joined by itself cannot be told to.
  if (!network_.has_ended(number) && (!in(rank).is_given_up || world_.random().one_in(2))) {
    end(number, fmt::format("process {} was replaced", number));
  }
  begin(rank, places_[rank.index()].incarnation + 1);
  world_.tell("driver",
              fmt::format("replaces {}, in process {}", name_of_rank(rank), last_process_));
}

// ---- faults -------------------------------------------------------------------------------------

bool Processes::kill(Rank rank) {
  const ProcessNumber number = process_of(rank);
  if (network_.has_ended(number)) {
    return false;
  }
  end(number, fmt::format("process {} was killed", number));
  return true;
}

bool Processes::stop(Rank rank, Clock::Time::duration span) {
  const ProcessNumber number = process_of(rank);
  if (network_.has_ended(number) || world_.is_stopped(number)) {
    return false;
  }
  world_.tell(name_of_rank(rank), fmt::format("is stopped for {:.3f} s", seconds(span)));
  network_.stop(number, span);
  return true;
}

bool Processes::hold(Rank a, Rank b, const std::vector<Plane>& planes, Clock::Time::duration span) {
  const std::string_view what = planes.size() == 2              ? "what"
                                : planes.front() == Plane::Data ? "the tensors that"
                                                                : "the messages that";
  world_.tell(name_of_rank(b),
              fmt::format("and {} hear {} they send each other up to {:.3f} s later",
                          name_of_rank(a),
                          what,
                          seconds(span)));
  for (const Plane plane : planes) {
    network_.hold(process_of(a), process_of(b), plane, world_.clock().now() + span);
  }
  return true;
}

bool Processes::break_control(Rank rank) {
  if (network_.has_ended(process_of(rank)) || !network_.break_control(process_of(rank))) {
    return false;
  }
  world_.tell(name_of_rank(rank), "has no connection with the driver any more");
  return true;
}

bool Processes::break_data(Rank from, Rank to) {
  if (!network_.break_data(process_of(from), process_of(to))) {
    return false;
  }
  world_.tell(name_of_rank(from),
              fmt::format("is cut from {}: tensors may be lost", name_of_rank(to)));
  return true;
}

bool Processes::part(const std::set<Rank>& ranks, bool out, bool in, Clock::Time::duration span) {
  std::string who;
  std::vector<Rank> others{kDriver};
  for (int r = 0; r < std::ssize(places_); ++r) {
    if (!ranks.contains(Rank(r))) {
      others.emplace_back(r);
    }
  }
  const World::Time until = world_.clock().now() + span;
  for (const Rank here : ranks) {
    who += (who.empty() ? "" : ", ") + name_of_rank(here);
    for (const Rank there : others) {
      if (out) {
        network_.block(process_of(here), process_of(there), until);
      }
      if (in) {
        network_.block(process_of(there), process_of(here), until);
      }
    }
  }
  world_.tell("network",
              fmt::format("nothing gets {} {} for {:.3f} s",
                          out && in ? "to or from"
                          : out     ? "from"
                                    : "to",
                          who,
                          seconds(span)));
  return true;
}

bool Processes::refuse_memory(Rank rank, int grants) {
  if (network_.has_ended(process_of(rank))) {
    return false;
  }
  in(rank).grants = grants;
  return true;
}

bool Processes::is_refused_memory() {
  const ProcessNumber here = Strands::process_here().value_or(0);
  if (here == 0 || network_.has_ended(here)) {
    return false;
  }
  Process& process = processes_.at(here);
  std::optional<int>& grants = process.grants;
  if (!grants || (*grants)-- > 0) {
    return false;
  }
  grants.reset();
  world_.tell(name_of(here), "gets no memory");
  for (const Plane plane : {Plane::Control, Plane::Data}) {
    network_.disturb(plane, world_.clock().now());
  }
  return true;
}

bool Processes::slow(Rank rank, Clock::Time::duration span) {
  if (network_.has_ended(process_of(rank))) {
    return false;
  }
  world_.tell(name_of_rank(rank), fmt::format("is slow for {:.3f} s", seconds(span)));
  in(rank).slow_until = world_.clock().now() + span;
  return true;
}

void Processes::wait_if_slow(Rank rank) {
  const World::Time now = world_.clock().now();
  if (now >= in(rank).slow_until) {
    return;
  }
  const World::Time until = now + world_.random().up_to(kSlowest);
  for (const Plane plane : {Plane::Control, Plane::Data}) {
    network_.disturb(plane, until);
  }
  std::mutex nobody;
  std::unique_lock lock(nobody);
  std::condition_variable changed;
  (void)Clock::current()->wait_until(changed, lock, until, [] { return false; });
}

bool Processes::end_driver() {
  if (!world_.has_driver()) {
    return false;
  }
  world_.tell("driver", "is killed");
  world_.end_driver();
  network_.end_driver();
  driver_ends_.clear();
  for (auto& [number, process] : processes_) {
    process.is_given_up = true;
    trouble(process, number);
  }
  return true;
}

void Processes::begin_driver() {
  world_.begin_driver();
  world_.tell("driver", "begins again");
  for (int r = 0; r < std::ssize(places_); ++r) {
    begin(Rank(r), 0);
  }
}

// ---- what is known ------------------------------------------------------------------------------

bool Processes::has_lost() const {
  return std::ranges::any_of(places_, [this](const Place& place) {
    return network_.has_ended(place.process) || processes_.at(place.process).is_given_up;
  });
}

std::int64_t Processes::bytes_waiting() const {
  std::int64_t bytes = 0;
  for (const std::weak_ptr<RankEnd>& weak : driver_ends_) {
    const std::shared_ptr<RankEnd> end = weak.lock();
    bytes += end == nullptr ? 0 : end->bytes_waiting();
  }
  for (int r = 0; r < std::ssize(places_); ++r) {
    if (!is_lost(Rank(r))) {
      for (const std::shared_ptr<RankEnd>& end : in(Rank(r)).transports) {
        bytes += end->bytes_waiting();
      }
    }
  }
  return bytes;
}

bool Processes::is_told_in_time(Rank rank) const {
  const Process& process = in(rank);
  return process.is_given_up && process.told < process.lost + kCauseLimit;
}

// ---- what processes find out --------------------------------------------------------------------

void Processes::end(ProcessNumber number, const std::string& how) {
  Process& process = processes_.at(number);
  process.how = how;
  world_.tell(name_of(number), how);
  network_.end(number);
  trouble(process, number);
  if (world_.random().one_in(4)) {
    tell_cause(number, how, world_.random().up_to(1ms));  // before the loss is known
  }
  const Error why(Errc::ClusterClosed, "the process has ended");
  for (const std::shared_ptr<RankEnd>& end : process.transports) {
    end->close(why);
  }
  for (const caf::actor& actor : process.actors) {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
  }
}

void Processes::trouble(Process& process, ProcessNumber number) {
  if (network_.has_ended(number) && process.is_given_up) {
    process.trouble = nullptr;
  } else if (process.trouble == nullptr) {
    process.trouble = network_.disturb();
  }
}

/// The first cause that is told stays (PS-2).
void Processes::tell_cause(ProcessNumber number,
                           const std::string& cause,
                           Clock::Time::duration later) {
  const auto tell = [this, number, cause, lasts = network_.disturb()] {
    Process& process = processes_.at(number);
    if (process.end->set_value(cause)) {
      process.cause = cause;
      process.told = world_.clock().now();
    }
  };
  network_.in(0, world_.clock().now() + later, if_alive(tell));
}

void Processes::gave_up(ProcessNumber number) {
  Process& process = processes_.at(number);
  process.is_given_up = true;
  process.lost = world_.clock().now();
  trouble(process, number);
  if (process.how.empty()) {
    world_.tell("driver", fmt::format("gives up {}, process {}", name_of(number), number));
  }
  // Often later than the news itself, and sometimes too late (DR-8).
  tell_cause(number,
             process.how.empty() ? fmt::format("process {} is out of reach", number) : process.how,
             world_.random().one_in(2) ? 0ns : world_.random().up_to(1500ms));
}

/// Keeps WP-1. What the process does until it ends must not count.
void Processes::lost_driver(ProcessNumber number) {
  trouble(processes_.at(number), number);
  const auto end_it = [this, number] {
    end(number, fmt::format("process {} ended, without its driver", number));
  };
  network_.in(number, world_.clock().now() + world_.random().up_to(5ms), if_alive(end_it));
}

/// Keeps WP-2, at the driver CUT-1.
void Processes::broke(ProcessNumber from, ProcessNumber to) {
  const bool is_forgotten =
      from != 0 && (processes_.at(from).is_forgotten ||
                    (to == 0 && process_of(processes_.at(from).rank) != from));
  if (is_forgotten) {
    return;
  }
  if (to == 0) {
    condemn(from, "tensors of it were lost");
  } else {
    end(to, fmt::format("process {} ended, as a tensor from {} was lost", to, name_of(from)));
  }
}

/// Keeps WP-3 and CUT-2.
void Processes::cut(ProcessNumber from, ProcessNumber to) {
  if (from == 0) {
    condemn_if_there(to, to, "the driver's tensors do not reach it");
    return;
  }
  const Network::Disturbance lasts = network_.has_ended(to) ? nullptr : network_.disturb();
  const auto hear = [this, from, to, lasts] {
    if (to == 0) {
      condemn(from, "its tensors do not reach the driver");
    } else {
      condemn_if_there(from, to, fmt::format("its tensors do not reach {}", name_of(to)));
    }
  };
  network_.send(from, 0, Plane::Control, if_alive(hear));
}

void Processes::condemn_if_there(ProcessNumber number,
                                 ProcessNumber other,
                                 const std::string& why) {
  const Network::Disturbance lasts = network_.has_ended(other) ? nullptr : network_.disturb();
  const auto judge = [this, number, other, why, lasts] {
    const Process& there = processes_.at(other);
    if (process_of(there.rank) == other && (number == other || !there.is_condemned)) {
      condemn(number, why);
    }
  };
  network_.send(0, other, Plane::Control, if_alive([this, other, judge = if_alive(judge)] {
                  network_.send(other, 0, Plane::Control, judge);
                }));
}

void Processes::condemn(ProcessNumber number, const std::string& why) {
  Process& process = processes_.at(number);
  if (process.is_given_up || process.is_condemned || process_of(process.rank) != number) {
    return;
  }
  process.is_condemned = true;
  trouble(process, number);
  const std::string cause = fmt::format("process {} was ended by the driver: {}", number, why);
  world_.tell("driver", fmt::format("condemns {}: {}", name_of(number), why));
  if (process.end->set_value(cause)) {
    process.cause = cause;
    process.told = world_.clock().now();
  }
  const auto kill = [this, number] { end(number, fmt::format("process {} was ended", number)); };
  if (world_.random().one_in(2)) {  // by a signal, or by a message
    if (!network_.has_ended(number)) {
      kill();
    }
  } else {
    network_.send(0, number, Plane::Control, if_alive(kill));
  }
}

}  // namespace stagecraft::simulation
