#include "stagecraft/tests/simulate/cluster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/launch/fleet/process_binding.h"
#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/actors/launch/ways/here.h"
#include "stagecraft/actors/launch/ways/joining.h"
#include "stagecraft/actors/launch/worker/worker_process.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/worker/stage_worker.h"
#include "stagecraft/tests/simulate/refusing_allocator.h"

namespace stagecraft::simulation {

using namespace std::chrono_literals;

namespace {

constexpr const char* kKilled = "was killed by signal 9 (Killed)";

/// The longest time that a fleet waits for a worker, and a worker for its place.
constexpr std::chrono::milliseconds kJoinLimit{20'000};

/// Returns "ended with exit status 3", as a worker process ends for this reason.
std::string exit_text(const std::string& why) {
  const int status = why == kConnectionLost ? kDriverLost : why == kReplaced ? kToBeReplaced : 1;
  return fmt::format("ended with exit status {}", status);
}

std::string name_of_rank(Rank rank) {
  return rank == kDriver ? "driver" : fmt::format("rank {}", rank.value);
}

/// Returns the text of a complete future; empty if nobody knows it any more.
std::string text_of(const Future<std::string>& text) {
  try {
    return text.get();
  } catch (const Error&) {
    return "";
  }
}

double seconds(Clock::Time::duration span) {
  return std::chrono::duration<double>(span).count();
}

}  // namespace

/// Child is a worker process that the driver has started.
class Processes::Child final : public WorkerChild {
 public:
  Child(std::weak_ptr<Processes> processes, const Ground& ground, ProcessNumber number)
      : processes_(std::move(processes)), ground_(ground), number_(number) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() override { kill(); }

  [[nodiscard]] pid_t id() const override { return number_; }
  void kill() const override;

 private:
  const std::weak_ptr<Processes> processes_;
  const Ground& ground_;
  const ProcessNumber number_;
};

/// Ground is what the fleet of one driver stands on.
class Processes::Ground final : public FleetGround {
 public:
  explicit Ground(Processes& processes)
      : all_(processes), processes_(processes.weak_from_this()), world_(processes.world_) {}
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;
  ~Ground() override { close(); }

  /// Lets the driver do nothing more.
  void end_driver() {
    is_ended_ = true;
    close();
  }
  [[nodiscard]] bool is_ended() const { return is_ended_; }
  [[nodiscard]] const caf::strong_actor_ptr& admission() const { return admission_; }
  [[nodiscard]] PeerNodes& nodes() const { return *nodes_; }
  [[nodiscard]] const std::shared_ptr<Port>& port() const { return port_; }
  [[nodiscard]] const CutLinks& cuts() const { return *cuts_; }

  [[nodiscard]] ActorHost& host() const override { return world_.host(); }
  [[nodiscard]] Places::StoodStill standstills() const override {
    return [](std::chrono::milliseconds) { return 0ms; };
  }
  [[nodiscard]] std::shared_ptr<DataPort> open_port(const CutLinks& cuts) override {
    cuts_.emplace(cuts);
    port_ = Port::open(all_.network_, all_.ports_, 0);
    return port_;
  }
  void admit(AdmissionEvents events) override {
    events.joins = [weak = processes_, joins = events.joins](
                       const Join& join, const WorkerHostActor& host, const std::string& worker) {
      const bool has_place = joins(join, host, worker);
      if (const auto processes = weak.lock(); processes && has_place) {
        processes->has_joined(host);
      }
      return has_place;
    };
    admission_ =
        caf::actor_cast<caf::strong_actor_ptr>(spawn_admission(host(), std::move(events), nodes_));
  }
  void close() override {
    if (admission_) {
      caf::anon_send_exit(caf::actor_cast<caf::actor>(admission_), caf::exit_reason::user_shutdown);
      admission_ = nullptr;
    }
  }
  [[nodiscard]] std::string address() const override { return "simulated"; }
  void tell_address() override {}
  void renew(const PlaceTurn& turn) override {
    if (all_.options_.workers_come) {
      all_.bring(turn);
    }
  }
  [[nodiscard]] WorkerProcessOptions way_to_join(const PlaceTurn&) const override { return {}; }
  [[nodiscard]] std::unique_ptr<WorkerChild> start(
      const PlaceTurn& turn,
      std::function<void()> /*on_let_in*/,
      std::function<void(const std::string& how)> on_end) override {
    return std::make_unique<Child>(
        processes_, *this, all_.begin(turn, /*says_place=*/true, kJoinLimit, std::move(on_end)));
  }

 private:
  Processes& all_;
  const std::weak_ptr<Processes> processes_;
  World& world_;
  const std::shared_ptr<PeerNodes> nodes_ = std::make_shared<PeerNodes>();
  caf::strong_actor_ptr admission_;
  std::shared_ptr<Port> port_;
  std::optional<CutLinks> cuts_;
  bool is_ended_ = false;
};

/// A driver that has ended kills nobody.
void Processes::Child::kill() const {
  const auto processes = processes_.lock();
  if (processes != nullptr && !ground_.is_ended() && !processes->network_.has_ended(number_)) {
    processes->end(number_, kKilled);
  }
}

Processes::Processes(Network& network, int ranks, bool outlives)
    : network_(network),
      world_(network.world()),
      outlives_(outlives),
      options_{.program = "/proc/self/exe",
               .workers_come = world_.random().one_in(2) || outlives,
               .silence = Network::kSilence,
               .join_deadline = kJoinLimit},
      current_(static_cast<std::size_t>(ranks), kNobody) {
  network_.report_to(
      {.gave_up = [this](ProcessNumber process) { gave_up(process); },
       .lost_driver = [this](ProcessNumber process) { trouble(processes_.at(process), process); },
       .broke = [this](ProcessNumber from, ProcessNumber to) { broke(from, to); },
       .cut = [this](ProcessNumber from, ProcessNumber to) { cut(from, to); }});
}

Processes::~Processes() {
  end_fleet();
  for (const auto& [number, process] : processes_) {
    if (!network_.has_ended(number)) {
      end(number, "ended with its cluster");
    }
  }
}

void Processes::end_fleet() {
  network_.report_to({});
  const std::shared_ptr<Fleet> fleet = std::move(fleet_);  // no other worker comes
  for (const auto& [number, process] : processes_) {
    if (!network_.has_ended(number) && !process.is_given_up) {
      end(number, "ended with its cluster");
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

std::string Processes::name_of(ProcessNumber process) const {
  return name_of_rank(process == 0 ? kDriver : Rank(processes_.at(process).place));
}

// ---- the launcher -------------------------------------------------------------------------------

void Processes::begin_fleet() {
  ++drivers_;
  auto ground = std::make_unique<Ground>(*this);
  ground_ = ground.get();
  std::shared_ptr<const WorkerWay> way =
      options_.workers_come ? workers_that_join(options_) : workers_here(options_);
  fleet_ = std::make_shared<Fleet>(options_, Clock::current(), std::move(way), std::move(ground));
}

Fleet& Processes::fleet() {
  if (fleet_ == nullptr) {
    begin_fleet();
  }
  return *fleet_;
}

std::unique_ptr<Binding> Processes::bind(int ranks, LastRank last) {
  (void)fleet();
  return bind_to_processes(fleet_, options_, ranks, last);
}

WorkerPlace Processes::place(Rank rank) const {
  WorkerPlace place = fleet_ == nullptr ? WorkerPlace{} : fleet_->who(rank.value);
  place.rank = rank;
  return place;
}

void Processes::replace(Rank rank) {
  world_.tell("driver", fmt::format("replaces {}", name_of_rank(rank)));
  const std::shared_ptr<Fleet> kept = fleet_;  // its driver may end meanwhile
  fleet().replace(rank.value);
}

// ---- worker processes ---------------------------------------------------------------------------

ProcessNumber Processes::connect(int place) {
  const ProcessNumber number = ++last_process_;
  Process& process = processes_[number];
  process.place = place;
  process.driver = drivers_;
  process.worker = worker_name(place);
  network_.begin(number);
  process.admission =
      caf::actor_cast<AdmissionActor>(network_.handle(ground_->admission(), 0, number));
  process.node = ground_->nodes().enter(network_.node_of(number), process.worker);
  return number;
}

ProcessNumber Processes::begin(const PlaceTurn& turn,
                               bool says_place,
                               std::chrono::milliseconds patience,
                               std::function<void(const std::string& how)> on_end) {
  const ProcessNumber number = connect(turn.place);
  processes_.at(number).on_end = std::move(on_end);
  if (turn.place < std::ssize(current_)) {
    current_[static_cast<std::size_t>(turn.place)] = number;
  }
  const Join said{.place = says_place ? turn.place : -1,
                  .incarnation = says_place ? turn.incarnation : -1,
                  .port = {},
                  .process = number,
                  .host = "simulated",
                  .processor = processor_of_this_process()};
  const auto later = world_.random().up_to(world_.random().one_in(8) ? 2s : 20ms);
  network_.in(number, world_.clock().now() + later, if_alive([this, number, said, patience] {
                join(number, said, patience);
              }));
  return number;
}

void Processes::bring(const PlaceTurn& turn) {
  const auto is_of_place = [&](ProcessNumber one) {
    return processes_.at(one).place == turn.place;
  };
  if (std::ranges::none_of(staying_, is_of_place)) {
    const auto [begin, end] = coming_.equal_range(turn.place);
    const std::multimap<int, Left> waiting(begin, end);
    coming_.erase(begin, end);
    for (const auto& [place, left] : waiting) {
      come(place, left);
    }
    if (waiting.empty()) {
      come(turn.place, {});
    }
  }
}

bool Processes::has_successor(ProcessNumber number) const {
  const Process& process = processes_.at(number);
  const bool was_last = process.has_joined && !process.is_left_behind;
  return std::ranges::any_of(processes_, [&](const auto& entry) {
    const Process& other = entry.second;
    return entry.first != number && other.place == process.place && other.has_joined &&
           (other.driver > process.driver || (other.driver == process.driver && !was_last));
  });
}

void Processes::come(int place, const Left& left) {
  const bool says_place = world_.random().one_in(2);
  const PlaceTurn any{.place = place, .incarnation = -1};
  Process& process = processes_.at(begin(any, says_place, kJoinLimit, nullptr));
  process.has_outlived = left.copies != nullptr && !left.copies->is_empty() &&
                         processes_.at(left.from).driver < drivers_ && !has_successor(left.from);
  if (outlives_) {
    process.left = left.copies != nullptr ? left.copies : std::make_shared<LeftCopies>();
  }
}

/// A batch system does so if there are none.
void Processes::come_back(int place, const Left& left) {
  if (fleet_ == nullptr || ground_->admission() == nullptr) {
    coming_.emplace(place, left);
    return;
  }
  const ProcessNumber before = current_[static_cast<std::size_t>(place)];
  come(place, left);
  if (before != kNobody && processes_.at(before).driver == drivers_) {
    current_[static_cast<std::size_t>(place)] = before;  // whose end the driver has to learn yet
  }
}

/// As run_worker_process does. The ranks end one after the other, and leave their copies.
void Processes::outlive(ProcessNumber number, const std::string& why) {
  Process& process = processes_.at(number);
  const std::shared_ptr<LeftCopies> left = process.left;
  const std::weak_ptr<LeftCopies> lent = process.lent;
  const bool has_ranks = !process.actors.empty();
  left->expect();
  staying_.erase(number);
  end(number, "has no driver any more: " + why);
  staying_.insert(number);
  const auto look = [this, number, left, lent, has_ranks](const auto& again) -> void {
    if (!lent.expired()) {
      world_.at(world_.clock().now() + 1ms, if_alive([again] { again(again); }));
      return;
    }
    left->hand_on();
    staying_.erase(number);
    const bool is_killed = world_.random().one_in(16);
    const bool has_nothing = is_killed || (has_ranks && left->is_empty());
    world_.tell(name_of(number),
                is_killed     ? "is killed meanwhile"
                : has_nothing ? "has no copies, and ends"
                              : "waits for another driver");
    come_back(processes_.at(number).place, has_nothing ? Left() : Left{left, number});
  };
  look(look);
}

/// As run_worker_process does.
void Processes::join(ProcessNumber number, const Join& said, std::chrono::milliseconds patience) {
  Process& process = processes_.at(number);
  process.port = Port::open(network_, ports_, number);
  Join join = said;
  join.port = process.port->address();
  process.served = std::make_shared<ServedProcess>(
      ServedProcess{.host = host(),
                    .port = process.port,
                    .types = std::make_shared<ActorTypes>(),
                    .values = std::make_shared<StepValues>(),
                    .start_rank =
                        [this, number](Rank rank, std::shared_ptr<Transport> end) {
                          return start_rank(number, rank, std::move(end));
                        },
                    .ended = {},
                    .taken =
                        [left = process.left] {
                          if (left != nullptr) {
                            left->drop();
                          }
                        }});
  const auto end_with = [this, number](const std::string& why) {
    if (network_.has_ended(number)) {
      return;
    }
    trouble(processes_.at(number), number);
    // Until it ends, the process goes on, and nobody may take what it does for the work of a rank.
    const auto end_it = [this, number, why] {
      const Process& ends = processes_.at(number);
      const bool has_driver = ground_ != nullptr && ends.driver == drivers_;
      if (ends.left != nullptr && (why == kConnectionLost || !has_driver)) {
        outlive(number, why);
        return;
      }
      world_.tell(name_of(number), "ends: " + why);
      end(number, exit_text(why));
    };
    network_.in(number, world_.clock().now() + world_.random().up_to(5ms), if_alive(end_it));
  };
  const Future<std::string> ended = process.served->ended.future();
  ended.on_ready([ended, end_with, alive = weak_from_this()] {
    const std::string why = text_of(ended);
    if (!alive.expired() && !why.empty()) {
      end_with(why);
    }
  });
  const auto joined = join_cluster(process.served,
                                   process.admission,
                                   std::move(join),
                                   Clock::current()->now() + patience,
                                   "the simulated driver has not admitted this worker");
  joined.on_ready([joined, end_with, alive = weak_from_this()] {
    try {
      (void)joined.get();
    } catch (const Error& error) {
      if (!alive.expired()) {
        end_with(error.what());
      }
    }
  });
}

/// Notes which process has a place now, and what the driver learns of its end.
void Processes::has_joined(const WorkerHostActor& host) {
  const ProcessNumber number = Network::process_of(caf::actor_cast<caf::strong_actor_ptr>(host));
  const auto member = fleet_ == nullptr ? std::nullopt : fleet_->places().member_at(host.node());
  if (!member) {
    return;  // let in by a driver that has ended
  }
  Process& process = processes_.at(number);
  process.place = member->place;
  process.has_joined = true;
  current_[static_cast<std::size_t>(member->place)] = number;
  world_.tell(name_of(number), fmt::format("joins, in process {}", number));
  const Future<std::string> cause =
      fleet_->places().cause_of_end({member->place, member->incarnation});
  cause.on_ready([this, cause, number, alive = weak_from_this()] {
    const std::string text = text_of(cause);
    if (!alive.expired() && !text.empty()) {
      Process& lost = processes_.at(number);
      lost.cause = text;
      lost.told = world_.clock().now();
      trouble(lost, number);
      world_.tell("driver", fmt::format("learns that {}", text));
    }
  });
}

Worker Processes::start_rank(ProcessNumber number, Rank rank, std::shared_ptr<Transport> end) {
  Process& process = processes_.at(number);
  if (network_.has_ended(number)) {  // a message was there before
    throw Error(Errc::ClusterClosed, "the process has ended");
  }
  const auto disturb = [weak = weak_from_this(), number](Rank, const Instruction&) {
    const auto processes = weak.lock();  // setups that were not taken outlive the run
    if (processes == nullptr) {
      return;
    }
    processes->wait_if_slow(number);
    if (processes->is_refused_memory(0)) {
      simulation::refuse_memory();
    }
  };
  std::shared_ptr<LeftCopies> lent = process.lent.lock();
  if (process.left != nullptr && lent == nullptr) {
    lent = {process.left.get(), [left = process.left](LeftCopies*) {}};
    process.lent = lent;
  }
  const Worker worker = launch_thread(
      host(),
      rank,
      std::move(end),
      process.served->values,
      [disturb](const WorkerContext& context, const LoadPlan& m) {
        RankSetup setup = received_setup(context, m);
        setup.options.before_instruction = disturb;
        return setup;
      },
      std::move(lent));
  const auto as_handle = [&](const caf::actor& actor) {
    process.actors.push_back(actor);
    return network_.handle(caf::actor_cast<caf::strong_actor_ptr>(actor), number, 0);
  };
  const auto plan_thread = as_handle(caf::actor_cast<caf::actor>(worker.plan_thread));
  const auto agent = as_handle(caf::actor_cast<caf::actor>(worker.agent));
  return {.plan_thread = caf::actor_cast<PlanActor>(plan_thread),
          .agent = caf::actor_cast<AgentActor>(agent)};
}

void Processes::end(ProcessNumber number, const std::string& how) {
  Process& process = processes_.at(number);
  process.how = how;
  world_.tell(name_of(number), fmt::format("process {} {}", number, how));
  network_.end(number);
  trouble(process, number);
  if (process.on_end) {
    // Mostly at once, often later than the loss itself is known, and sometimes too late (DR-8).
    const auto later = world_.random().up_to(world_.random().one_in(4) ? 1500ms : 1ms);
    network_.in(0,
                world_.clock().now() + later,
                [tell = process.on_end, how, lasts = network_.disturb()] { tell(how); });
  } else if (fleet_ != nullptr && !process.has_joined && how == kKilled) {
    bring({process.place, -1});  // as a batch system does
  }
  if (process.port) {
    process.port->abandon(Error(Errc::ClusterClosed, "the process has ended"));
  }
  std::vector<caf::actor> actors = network_.actors_of(number);
  actors.insert(actors.end(), process.actors.begin(), process.actors.end());
  for (const caf::actor& actor : actors) {
    caf::anon_send_exit(actor, caf::exit_reason::kill);
  }
  process.served.reset();
  process.left.reset();
  if (staying_.erase(number) > 0) {
    come_back(process.place, {});
  }
}

void Processes::trouble(Process& process, ProcessNumber number) {
  if (network_.has_ended(number) && process.is_given_up) {
    process.trouble = nullptr;
  } else if (process.trouble == nullptr) {
    process.trouble = network_.disturb();
  }
}

// ---- faults -------------------------------------------------------------------------------------

bool Processes::kill(Rank rank) {
  const ProcessNumber number = process_of(rank);
  if (!has_process(rank)) {
    return false;
  }
  end(number, kKilled);
  return true;
}

void Processes::after_tensors(Rank from, Rank to, int count, Network::Arrive event) {
  if (has_process(from) && has_process(to)) {
    network_.after_tensors(process_of(from), process_of(to), count, std::move(event));
  }
}

bool Processes::stop(Rank rank, Clock::Time::duration span, bool with_clock) {
  const ProcessNumber number = process_of(rank);
  if (!has_process(rank) || world_.is_stopped(number)) {
    return false;
  }
  world_.tell(
      name_of_rank(rank),
      fmt::format(
          "is stopped for {:.3f} s{}", seconds(span), with_clock ? ", and its clock as well" : ""));
  network_.stop(number, span, with_clock);
  return true;
}

bool Processes::set_clock_ahead(Rank rank, Clock::Time::duration span) {
  const ProcessNumber number = process_of(rank);
  if (!has_process(rank) || world_.is_stopped(number)) {
    return false;
  }
  world_.tell(name_of_rank(rank), fmt::format("has a clock that jumps by {:.3f} s", seconds(span)));
  network_.set_clock_ahead(number, span);
  return true;
}

bool Processes::hold(Rank a, Rank b, const std::vector<Plane>& planes, Clock::Time::duration span) {
  if (process_of(a) == kNobody || process_of(b) == kNobody) {
    return false;
  }
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
  if (!has_process(rank) || !network_.break_control(process_of(rank))) {
    return false;
  }
  world_.tell(name_of_rank(rank), "has no connection with the driver any more");
  return true;
}

bool Processes::break_data(Rank from, Rank to) {
  if (!has_process(from) || !has_process(to) ||
      !network_.break_data(process_of(from), process_of(to))) {
    return false;
  }
  world_.tell(name_of_rank(from),
              fmt::format("is cut from {}: tensors may be lost", name_of_rank(to)));
  return true;
}

bool Processes::part(const std::set<Rank>& ranks, bool out, bool in, Clock::Time::duration span) {
  if (std::ranges::find(current_, kNobody) != current_.end()) {
    return false;
  }
  std::string who;
  std::vector<Rank> others{kDriver};
  for (int r = 0; r < std::ssize(current_); ++r) {
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

bool Processes::refuse_memory(Rank rank, Refusal refusal) {
  if (!has_process(rank)) {
    return false;
  }
  in(rank).refusal = refusal;
  return true;
}

bool Processes::is_refused_memory(std::size_t bytes) {
  const ProcessNumber here = Strands::process_here().value_or(0);
  if (here == 0 || network_.has_ended(here)) {
    return false;
  }
  Process& process = processes_.at(here);
  std::optional<Refusal>& refusal = process.refusal;
  if (!refusal || bytes < refusal->least || refusal->grants-- > 0) {
    return false;
  }
  refusal.reset();
  world_.tell(name_of(here), "gets no memory");
  network_.disturb(world_.clock().now());
  return true;
}

bool Processes::slow(Rank rank, Clock::Time::duration span) {
  if (!has_process(rank)) {
    return false;
  }
  world_.tell(name_of_rank(rank), fmt::format("is slow for {:.3f} s", seconds(span)));
  in(rank).slow_until = world_.clock().now() + span;
  return true;
}

void Processes::wait_if_slow(ProcessNumber number) {
  const World::Time now = world_.clock().now();
  if (now >= processes_.at(number).slow_until) {
    return;
  }
  const World::Time until = now + world_.random().up_to(kSlowest);
  network_.disturb(until);
  pause_strand(until - now);
}

bool Processes::come_as_stranger() {
  if (ground_ == nullptr || ground_->admission() == nullptr || !world_.has_driver()) {
    return false;
  }
  Random& random = world_.random();
  const int ranks = static_cast<int>(current_.size());
  const int other = static_cast<int>(random.below(current_.size()));
  const ProcessNumber number = connect((other + 1) % ranks);
  const bool greets = random.one_in(2), is_other_build = greets && random.one_in(2);
  const bool reports = !greets && random.one_in(2), is_own = !greets || is_other_build;
  Hello hello{.fingerprint = build_fingerprint()};
  hello.protocol += is_other_build ? 1 : 0;
  const Join join{.place = is_own ? -1 : other,
                  .port = {.endpoint = "ipc://stranger", .key = "stranger"}};
  const ProcessNumber member = process_of(Rank(other));
  const std::string key = member == kNobody || processes_.at(member).port == nullptr
                              ? ""
                              : processes_.at(member).port->address().key;
  world_.tell("network",
              fmt::format("a stranger {}, in process {}",
                          reports          ? "reports a cut"
                          : is_other_build ? "is of another build"
                          : greets         ? "asks for another's place"
                                           : "asks for a place at once",
                          number));
  const auto hear = if_alive([this, number] {
    if (!network_.has_ended(number)) {
      end(number, "ended, as a stranger");
    }
  });
  world_.as(number, [&] {
    host().system().spawn(
        [=, this, admission = processes_.at(number).admission](caf::event_based_actor* self) {
          const auto ask_for_place = [=, this] {
            self->request(admission, caf::timespan(kJoinLimit), join)
                .then(
                    [=, this](const Joined& answer) {
                      has_let_in_stranger_ =
                          has_let_in_stranger_ || (answer.error.empty() && !answer.later);
                      hear();
                    },
                    [=](const caf::error&) { hear(); });
          };
          if (reports) {
            const Error why(Errc::TransportClosed, "a stranger says so");
            self->send(admission, PeerCut{key, to_chain(why)});
            hear();
          } else if (greets) {
            self->request(admission, caf::timespan(kJoinLimit), hello)
                .then([=](const Welcome&) { ask_for_place(); }, [=](const caf::error&) { hear(); });
          } else {
            ask_for_place();
          }
        });
  });
  return true;
}

bool Processes::end_driver() {
  if (!world_.has_driver()) {
    return false;
  }
  world_.tell("driver", "is killed");
  world_.end_driver();
  network_.end_driver();
  if (ground_ != nullptr) {
    std::exchange(ground_, nullptr)->end_driver();
  }
  fleet_.reset();
  for (auto& [number, process] : processes_) {
    process.is_given_up = true;
    trouble(process, number);
    if (process.on_end && !network_.has_ended(number) && world_.random().one_in(2)) {
      const auto end_it = [this, number = number] { end(number, "ended with its lifeline"); };
      network_.in(number, world_.clock().now() + world_.random().up_to(5ms), if_alive(end_it));
    }
  }
  return true;
}

void Processes::begin_driver() {
  world_.begin_driver();
  world_.tell("driver", "begins again");
  for (ProcessNumber& number : current_) {
    if (number != kNobody && !network_.has_ended(number) && !world_.is_stopped(number) &&
        processes_.at(number).left != nullptr) {
      staying_.insert(number);
    } else {
      number = kNobody;
    }
  }
  begin_fleet();
}

// ---- what is known ------------------------------------------------------------------------------

bool Processes::is_known_lost(Rank rank) const {
  if (fleet_ == nullptr || fleet_->places().count() <= rank.value) {
    return false;
  }
  return fleet_->who(rank.value).lost || !fleet_->places().member(rank.value);
}

bool Processes::is_lost(Rank rank) const {
  return process_of(rank) == kNobody || !has_process(rank) || in(rank).is_given_up ||
         is_known_lost(rank);
}

bool Processes::has_lost() const {
  for (int r = 0; r < std::ssize(current_); ++r) {
    if (process_of(Rank(r)) != kNobody && is_lost(Rank(r))) {
      return true;
    }
  }
  return false;
}

std::int64_t Processes::bytes_waiting() const {
  std::int64_t bytes = ground_ == nullptr ? 0 : ground_->port()->bytes_waiting();
  for (int r = 0; r < std::ssize(current_); ++r) {
    if (!is_lost(Rank(r))) {
      bytes += in(Rank(r)).port->bytes_waiting();
    }
  }
  return bytes;
}

bool Processes::is_told_in_time(Rank rank) const {
  const Process& process = in(rank);
  return process.is_given_up && process.told < process.lost + kCauseLimit &&
         network_.driver_continued() <= process.lost;  // else it may find both times over at once
}

std::map<Rank, World::Time> Processes::late_copies() const {
  std::map<Rank, World::Time> late;
  const int ranks = static_cast<int>(current_.size());
  for (const auto& [way, until] : network_.late_tensors()) {
    const auto& [from, to] = way;
    if (from == 0 || to == 0) {
      continue;
    }
    const Rank rank(processes_.at(from).place);
    if (keeper_of(rank, ranks) == Rank(processes_.at(to).place)) {
      late[rank] = std::max(late[rank], until);
    }
  }
  return late;
}

// ---- what processes find out --------------------------------------------------------------------

void Processes::gave_up(ProcessNumber number) {
  Process& process = processes_.at(number);
  process.is_given_up = process.is_left_behind = true;
  process.lost = world_.clock().now();
  process.node.reset();
  trouble(process, number);
  if (process.how.empty()) {
    world_.tell("driver", fmt::format("gives up {}, process {}", name_of(number), number));
  }
}

/// Keeps WP-2; the driver keeps CUT-1.
void Processes::broke(ProcessNumber from, ProcessNumber to) {
  if (ground_ == nullptr) {
    return;
  }
  const std::shared_ptr<Port>& sender = from == 0 ? ground_->port() : processes_.at(from).port;
  const std::shared_ptr<Port>& receiver = to == 0 ? ground_->port() : processes_.at(to).port;
  if (!receiver->has_admitted(*sender)) {
    return;
  }
  if (to == 0) {
    ground_->cuts().broke(sender->address().key,
                          Error(Errc::TransportClosed, "tensors of it were lost"));
  } else {
    world_.tell(name_of(to), fmt::format("ends: a tensor from {} is lost", name_of(from)));
    end(to, exit_text(kReplaced));
  }
}

/// Keeps WP-3; the driver keeps CUT-2.
void Processes::cut(ProcessNumber from, ProcessNumber to) {
  if (ground_ == nullptr) {
    return;
  }
  const std::shared_ptr<Port>& sender = from == 0 ? ground_->port() : processes_.at(from).port;
  const std::shared_ptr<Port>& receiver = to == 0 ? ground_->port() : processes_.at(to).port;
  if (!sender->has_admitted(*receiver)) {
    return;
  }
  network_.disturb(Plane::Control, world_.clock().now());
  const Error why(Errc::TransportClosed, "the way is cut");
  if (from == 0) {
    ground_->cuts().cut_from_here(receiver->address().key, why);
  } else {
    tell_cut(host(), processes_.at(from).admission, receiver->address().key, why);
  }
}

}  // namespace stagecraft::simulation
