#include "stagecraft/actors/launch/fleet/fleet.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/actors/launch/fleet/place_program.h"
#include "stagecraft/actors/launch/fleet/place_text.h"
#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/ways/start_turns.h"
#include "stagecraft/actors/launch/worker/worker_process.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

/// A wait longer than the first is reported, and again at intervals of the second.
constexpr std::chrono::seconds kPatienceOfPeople{1}, kTellAgain{5};
/// The system knows of a process's exit a moment after its connections close; on a busy machine the
/// fleet learns of it later still.
constexpr std::chrono::milliseconds kMoment{500};

}  // namespace

Fleet::Fleet(const SpawnOptions& options)
    : options_(options),
      program_(find_worker_program(options.program)),
      credentials_(options),
      address_(address_for_hosts(options.interface, options.hosts)),
      host_(open_control_plane(load_credentials(credentials_.of_driver()),
                               {.interval = options.heartbeat, .silence = options.silence})) {}

std::shared_ptr<Fleet> Fleet::open(const SpawnOptions& options) {
  std::shared_ptr<Fleet> fleet(new Fleet(options));
  fleet->port_ = DataPort::open(
      {.bind = any_port_of(fleet->address_),
       .when_broken =
           [there = fleet->weak_from_this()](const std::string& key, const Error& why) {
             if (const auto here = there.lock()) {
               here->link_broke(key, why);
             }
           },
       .silence = options.silence,
       .when_cut =
           [there = fleet->weak_from_this()](const std::string& key, const Error& why) {
             if (const auto here = there.lock()) {
               here->cut_from_here(key, why);
             }
           }});
  return fleet;
}

void Fleet::require(int places) {
  std::vector<int> all;
  {
    const std::scoped_lock lock(mutex_);
    if (!options_.hosts.empty() && places > slots_of(options_.hosts)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} worker processes are needed, and the hosts have places for {}: "
                              "give them more slots, or name more hosts",
                              places,
                              slots_of(options_.hosts)));
    }
    if (options_.workers_come && options_.workers_coming >= 0 && places > options_.workers_coming) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("{} worker processes are needed, and {} come: start more of them (in a "
                      "step of Slurm srun --ntasks), or use fewer ranks",
                      places,
                      options_.workers_coming));
    }
    require_files(places);
    const bool is_first = admission_ == nullptr;
    if (is_first) {
      admission_ = std::make_unique<Admission>(host_, options_, address_, weak_from_this());
    }
    places_.resize(std::max(places_.size(), static_cast<std::size_t>(places)));
    for (int place = 0; place < places; ++place) {
      all.push_back(place);
      if (!places_[static_cast<std::size_t>(place)].awaited) {
        call_for(place);
      }
    }
    if (is_first) {
      tell_address();
    }
  }
  wait_for(all);
}

void Fleet::tell_address() {
  const std::string address = host_and_port(address_, admission_->port());
  tell(fmt::format("workers join at {}; tensors for this process arrive at {}",
                   address,
                   port_->address().endpoint));
  admission_->tell(address);
}

void Fleet::tell(const std::string& line) const {
  if (is_elsewhere(options_) && options_.tell) {
    options_.tell(line);
  }
}

void Fleet::replace(int place) {
  std::unique_ptr<ChildProcess> old;
  {
    const std::scoped_lock lock(mutex_);
    if (place < 0 || static_cast<std::size_t>(place) >= places_.size()) {
      throw Error(Errc::UsageArgument,
                  "no trainer of this cluster has had a worker process for this rank yet");
    }
    Place& there = places_[static_cast<std::size_t>(place)];
    end_process(there);
    old = std::move(there.child);
    if (there.member) {
      port_->forget(there.member->port);
    }
    there.member.reset();
    there.awaited = false;
    there.queued = false;
    there.let_in = false;
    there.lost = false;
    there.condemned.clear();
    ++there.incarnation;
  }
  old.reset();  // ends before its successor starts
  {
    const std::scoped_lock lock(mutex_);
    call_for(place);
  }
  wait_for({place});
}

/// Requires: the mutex.
void Fleet::end_process(Place& place) {
  if (place.child) {
    place.child->kill();
  } else if (place.member) {
    caf::anon_send_exit(place.member->host, caf::exit_reason::kill);
  }
}

/// Requires: the mutex.
void Fleet::call_for(int place) {
  Place& there = places_[static_cast<std::size_t>(place)];
  there.awaited = true;
  credentials_.renew(place, there.incarnation == 0);
  there.queued = !options_.workers_come;
}

void Fleet::start(int place) {
  Place& there = places_[static_cast<std::size_t>(place)];
  const ChildProgram program =
      place_program(options_,
                    program_,
                    {.host = address_,
                     .port = admission_->port(),
                     .credentials = credentials_.of_place(place),
                     .place = place,
                     .incarnation = there.incarnation},
                    [fleet = weak_from_this(), place, incarnation = there.incarnation] {
                      if (const auto here = fleet.lock()) {
                        here->was_let_in(place, incarnation);
                      }
                    });
  there.child = std::make_unique<ChildProcess>(program, [fleet = weak_from_this()] {
    if (const auto here = fleet.lock()) {
      const std::scoped_lock lock(here->mutex_);
      here->changed_.notify_all();
    }
  });
  there.queued = false;
}

/// Keeps FL-4.
void Fleet::start_those_in_turn() {
  if (std::ranges::none_of(places_, &Place::queued)) {
    return;
  }
  std::vector<StartState> states;
  for (const Place& place : places_) {
    const bool knocks = place.child && !place.let_in && !place.member && !has_ended(place);
    states.push_back(place.queued ? StartState::Queued
                     : knocks     ? StartState::Knocking
                                  : StartState::Settled);
  }
  for (const int place : start_turns(options_.hosts, states)) {
    start(place);
  }
}

void Fleet::was_let_in(int place, std::int64_t incarnation) {
  {
    const std::scoped_lock lock(mutex_);
    Place& there = places_[static_cast<std::size_t>(place)];
    there.let_in = there.let_in || there.incarnation == incarnation;
  }
  changed_.notify_all();
}

bool Fleet::has_ended(const Place& place) {
  return place.child && place.child->end(std::chrono::milliseconds(0)).has_value();
}

/// Returns the places whose workers have not joined.
std::vector<int> Fleet::missing_of(const std::vector<int>& places) const {
  std::vector<int> missing;
  for (const int place : places) {
    if (!places_[static_cast<std::size_t>(place)].member) {
      missing.push_back(place);
    }
  }
  return missing;
}

std::string Fleet::tell_missing(const std::vector<int>& missing) const {
  const auto awaited = std::ranges::count(places_, true, &Place::awaited);
  return missing_text(options_, static_cast<std::size_t>(awaited), missing);
}

void Fleet::wait_for(const std::vector<int>& places) {
  const auto started = std::chrono::steady_clock::now();
  const Deadline deadline = started + options_.join_deadline;
  Deadline next_word = started + kPatienceOfPeople;
  std::unique_lock lock(mutex_);
  std::vector<int> missing = missing_of(places);
  while (!missing.empty()) {
    start_those_in_turn();
    const bool ended = std::ranges::any_of(
        missing, [this](int place) { return has_ended(places_[static_cast<std::size_t>(place)]); });
    const auto now = std::chrono::steady_clock::now();
    if (ended || now >= deadline) {
      throw_missing(missing);
    }
    if (now >= next_word) {
      tell(tell_missing(missing));
      next_word = now + kTellAgain;
    }
    changed_.wait_until(lock, std::min(deadline, std::max(next_word, now)));
    const std::vector<int> before = std::exchange(missing, missing_of(places));
    if (before != missing && next_word > started + kPatienceOfPeople) {
      next_word = std::chrono::steady_clock::now();
    }
  }
}

void Fleet::throw_missing(const std::vector<int>& missing) const {
  const std::string why = refusal_.empty() ? "" : ": " + refusal_;
  for (const int place : missing) {
    const Place& there = places_[static_cast<std::size_t>(place)];
    if (!there.child) {
      continue;
    }
    if (const auto end = there.child->end(std::chrono::milliseconds(0))) {
      throw Error(Errc::ClusterMember,
                  fmt::format("worker {} {} before it had joined{}; it has said why on standard "
                              "error",
                              tell_process(place),
                              end_text(options_, place, *end),
                              why));
    }
  }
  throw Error(Errc::ClusterTimeout,
              late_text(options_, tell_missing(missing) + why, address_, admission_->port()));
}

/// Returns the id on its host; 0 while unknown. The fleet itself knows the id of a child on this
/// host.
std::int64_t Fleet::process_id(const Place& place) const {
  if (place.child && options_.hosts.empty()) {
    return place.child->id();
  }
  return place.member ? place.member->process : 0;
}

std::string Fleet::tell_process(int place) const {
  const Place& there = places_[static_cast<std::size_t>(place)];
  return process_text(
      options_, place, process_id(there), there.member ? there.member->host_name : "");
}

std::string Fleet::name_of(int place) const {
  const std::scoped_lock lock(mutex_);
  return "worker " + tell_process(place);
}

FleetMember Fleet::member(int place) const {
  std::int64_t incarnation = 0;
  {
    const std::scoped_lock lock(mutex_);
    const Place& there = places_.at(static_cast<std::size_t>(place));
    if (there.member && !there.lost) {
      return *there.member;
    }
    incarnation = there.incarnation;
  }
  throw_lost(place, incarnation);
}

void Fleet::throw_lost(int place, std::int64_t incarnation) const {
  const std::string cause = cause_of_end(place, incarnation);
  throw Error(Errc::ClusterMember,
              fmt::format("{} of this cluster is lost{}{}{}put another worker process in its "
                          "place with cluster.replace",
                          worker_name(place),
                          cause.empty() ? "" : ", as ",
                          cause,
                          kToGoOn));
}

WorkerPlace Fleet::who(int place) const {
  const std::scoped_lock lock(mutex_);
  if (static_cast<std::size_t>(place) >= places_.size()) {
    return {};
  }
  const Place& there = places_[static_cast<std::size_t>(place)];
  WorkerPlace who{.incarnation = there.incarnation};
  who.process = process_id(there);
  if (there.member) {
    who.address = there.member->port.endpoint;
    who.host = is_elsewhere(options_) ? there.member->host_name : "";
    who.processor =
        held_.empty() ? there.member->processor : held_to(there.member->processor, held_);
  }
  return who;
}

void Fleet::hold(const std::string& capability) {
  const std::scoped_lock lock(mutex_);
  held_ = capability;
}

std::string Fleet::held() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

void Fleet::tell_processors(const std::vector<NamedProcessor>& ranks) {
  const auto difference = difference_of(ranks);
  const std::string text = difference ? "ranks " + to_string(*difference) : "";
  const std::scoped_lock lock(mutex_);
  if (std::exchange(told_, text) == text || text.empty()) {
    return;
  }
  log(options_.tell ? Level::Info : Level::Warning,
      "ranks of several processors",
      {{"what", difference->what}, {"mend", difference->mend}});
  if (options_.tell) {
    options_.tell(text);
  }
}

std::string Fleet::cause_of_end(int place, std::int64_t incarnation) const {
  std::unique_lock lock(mutex_);
  const Place& there = places_.at(static_cast<std::size_t>(place));
  const auto is_another = [&] { return there.incarnation != incarnation || !there.awaited; };
  if (is_another()) {
    return {};
  }
  const auto end = [&] {
    return there.child ? there.child->end(std::chrono::milliseconds(0)) : std::nullopt;
  };
  // Others may have learned of the end before this fleet.
  changed_.wait_for(lock, kMoment, [&] { return is_another() || there.lost || end().has_value(); });
  if (is_another()) {
    return {};
  }
  if (!there.condemned.empty()) {
    return fmt::format("{} was ended by the driver: {}", tell_process(place), there.condemned);
  }
  if (there.lost && there.child) {
    const Deadline known = there.lost_at + kMoment;
    static_cast<void>(there.child->end(std::chrono::duration_cast<std::chrono::milliseconds>(
        std::max(known - std::chrono::steady_clock::now(), Deadline::duration(0)))));
  }
  if (const auto how = end()) {
    return fmt::format("{} {}", tell_process(place), end_text(options_, place, *how));
  }
  if (!there.lost) {
    return "";
  }
  return silence_text(
      options_,
      tell_process(place),
      standstills_->longest(std::chrono::steady_clock::now(), options_.silence + kMoment));
}

void Fleet::refused(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  refusal_ = why;
}

/// Returns the first place that awaits a worker; -1: none.
int Fleet::free_place() const {
  const auto at = std::ranges::find_if(
      places_, [](const Place& place) { return place.awaited && !place.member; });
  return at == places_.end() ? -1 : static_cast<int>(at - places_.begin());
}

bool Fleet::joined(const Join& join, const WorkerHostActor& host) {
  {
    const std::scoped_lock lock(mutex_);
    const int wished = join.place < 0 ? free_place() : join.place;
    const auto place = static_cast<std::size_t>(wished);
    const bool waits =
        wished >= 0 && place < places_.size() && places_[place].awaited && !places_[place].member;
    if (!waits && options_.workers_come) {
      return false;  // FL-3
    }
    if (!waits || (join.incarnation >= 0 && places_[place].incarnation != join.incarnation)) {
      throw Error(Errc::ClusterMember,
                  fmt::format("nobody waits for a worker in place {} (incarnation {})",
                              join.place,
                              join.incarnation));
    }
    places_[place].member = FleetMember{.place = wished,
                                        .incarnation = places_[place].incarnation,
                                        .host = host,
                                        .port = join.port,
                                        .process = join.process,
                                        .host_name = join.host,
                                        .processor = join.processor};
    tell(fmt::format("{}: {}, tensors arrive at {}",
                     ranks_text(options_, wished),
                     tell_process(wished),
                     join.port.endpoint));
  }
  changed_.notify_all();
  return true;
}

void Fleet::link_broke(const std::string& key, const Error& why) {
  log(Level::Error, "worker process is ended", {{"key", key}, {"why", why.what()}});
  const std::scoped_lock lock(mutex_);
  for (Place& place : places_) {
    if (place.member && place.member->port.key == key) {
      place.condemned = why.what();
      end_process(place);
    }
  }
}

template <class Condition>
const FleetMember* Fleet::find_member(Condition condition) const {
  for (const Place& place : places_) {
    if (place.member && !place.lost && condition(*place.member)) {
      return &*place.member;
    }
  }
  return nullptr;
}

void Fleet::cut(const caf::node_id& from, const std::string& key, const Error& why) {
  std::unique_lock lock(mutex_);
  const FleetMember* sender =
      find_member([&](const FleetMember& m) { return m.host.node() == from; });
  const FleetMember* receiver =
      find_member([&](const FleetMember& m) { return m.port.key == key; });
  const bool is_to_here = key == port_->address().key;
  if (sender == nullptr || (receiver == nullptr && !is_to_here)) {
    return;
  }
  const Turn turn{sender->place, sender->incarnation};
  const std::string text = fmt::format("its tensors do not reach {}: {}",
                                       is_to_here ? "the driver" : tell_process(receiver->place),
                                       why.what());
  if (is_to_here) {
    lock.unlock();
    condemn(turn, turn, text);
    return;
  }
  const FleetMember other = *receiver;
  lock.unlock();
  condemn_if_there(turn, text, other);
}

void Fleet::cut_from_here(const std::string& key, const Error& why) {
  std::unique_lock lock(mutex_);
  const FleetMember* found = find_member([&](const FleetMember& m) { return m.port.key == key; });
  if (found == nullptr) {
    return;
  }
  const FleetMember other = *found;
  lock.unlock();
  condemn_if_there({other.place, other.incarnation},
                   fmt::format("the driver's tensors do not reach it: {}", why.what()),
                   other);
}

void Fleet::condemn_if_there(const Turn& turn, const std::string& why, const FleetMember& other) {
  const Future<Here> answer =
      ask<Here>(host_, other.host, "a worker process", options_.join_deadline, AreYouThere{});
  const Turn towards{other.place, other.incarnation};
  answer.on_ready([answer, fleet = weak_from_this(), turn, towards, why] {
    try {
      static_cast<void>(answer.get());
    } catch (const Error&) {
      return;
    }
    if (const auto here = fleet.lock()) {
      here->condemn(turn, towards, why);
    }
  });
}

void Fleet::condemn(const Turn& turn, const Turn& towards, const std::string& why) {
  const std::scoped_lock lock(mutex_);
  const Place& peer = places_.at(static_cast<std::size_t>(towards.place));
  if (peer.incarnation != towards.incarnation || !peer.condemned.empty()) {
    return;  // both ends of a cut way report it
  }
  Place& place = places_.at(static_cast<std::size_t>(turn.place));
  if (place.incarnation == turn.incarnation && place.member && place.condemned.empty()) {
    log(Level::Error, "worker process is ended", {{"place", turn.place}, {"why", why}});
    place.condemned = why;
    end_process(place);
  }
}

void Fleet::lost(const caf::actor_addr& host) {
  {
    const std::scoped_lock lock(mutex_);
    for (Place& place : places_) {
      if (place.member && place.member->host.address() == host) {
        place.lost = true;
        place.lost_at = std::chrono::steady_clock::now();
      }
    }
  }
  changed_.notify_all();
}

}  // namespace stagecraft
