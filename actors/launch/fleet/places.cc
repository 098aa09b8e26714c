#include "stagecraft/actors/launch/fleet/places.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

StartState start_state(const Place& place) {
  switch (place.state()) {
    case PlaceState::Queued:
      return StartState::Queued;
    case PlaceState::Started:
      return StartState::Knocking;
    default:
      return StartState::Settled;
  }
}

}  // namespace

Places::Places(SpawnOptions options,
               std::shared_ptr<const WorkerWay> way,
               std::shared_ptr<const Clock> clock,
               std::function<void()> remind,
               StoodStill stood_still)
    : options_(std::move(options)),
      way_(std::move(way)),
      clock_(std::move(clock)),
      remind_(std::move(remind)),
      stood_still_(std::move(stood_still)) {}

Places::Settled::~Settled() {
  for (auto& [cause, text] : all_) {
    (void)cause->set_value(std::move(text));  // no effect if it was told before
  }
}

void Places::changed() {
  ++version_;
  changed_.notify_all();
}

// ---- workers are wanted, started and awaited ----------------------------------------------------

std::vector<PlaceTurn> Places::grow_to(int places) {
  std::vector<PlaceTurn> empty;
  const std::scoped_lock lock(mutex_);
  while (std::ssize(places_) < places) {
    places_.emplace_back();
  }
  for (int place = 0; place < places; ++place) {
    if (at(place).state() == PlaceState::Empty) {
      empty.push_back({place, at(place).incarnation()});
    }
  }
  return empty;
}

void Places::call(int place) {
  const std::scoped_lock lock(mutex_);
  at(place).call(!way_->starts_workers());
  changed();
}

std::vector<PlaceTurn> Places::take_turns() {
  std::vector<PlaceTurn> turns;
  const std::scoped_lock lock(mutex_);
  std::vector<StartState> states;
  for (const Place& place : places_) {
    states.push_back(start_state(place));
  }
  for (const int place : way_->turns(states)) {
    at(place).start();
    turns.push_back({place, at(place).incarnation()});
  }
  return turns;
}

void Places::keep(const PlaceTurn& turn, std::unique_ptr<WorkerChild> child) {
  std::unique_ptr<WorkerChild> superfluous;  // ends without the lock
  const std::scoped_lock lock(mutex_);
  superfluous = at(turn.place).keep(std::move(child), turn.incarnation);
}

void Places::take_back(const PlaceTurn& turn) {
  const std::scoped_lock lock(mutex_);
  if (Place* const place = of(turn)) {
    place->take_back();
  }
}

MissingWorkers Places::missing_of(const std::vector<int>& places) const {
  MissingWorkers missing;
  const std::scoped_lock lock(mutex_);
  missing.version = version_;
  missing.refusal = refusal_;
  missing.awaited = static_cast<std::size_t>(std::ranges::count_if(
      places_, [](const Place& p) { return p.state() != PlaceState::Empty; }));
  for (const int place : places) {
    const Place& there = at(place);
    if (!there.member()) {
      missing.places.push_back(place);
    }
    if (there.state() == PlaceState::Failed && missing.failure.empty()) {
      missing.failure =
          fmt::format("{} {}", text_.process(place, there), text_.ended(place, there.end()->text));
    }
  }
  return missing;
}

void Places::wait_for_change(const MissingWorkers& seen, Clock::Time when) const {
  std::unique_lock lock(mutex_);
  static_cast<void>(
      clock_->wait_until(changed_, lock, when, [&] { return version_ != seen.version; }));
}

std::optional<FleetMember> Places::vacate(int place) {
  Settled settled;
  std::unique_ptr<WorkerChild> old;  // ends before its successor starts, without the lock
  const std::scoped_lock lock(mutex_);
  if (place < 0 || place >= std::ssize(places_)) {
    throw Error(Errc::UsageArgument,
                "no trainer of this cluster has had a worker process for this rank yet");
  }
  at(place).kill();
  settled.add(at(place), "");
  std::optional<FleetMember> member = at(place).member();
  old = at(place).vacate();
  changed();
  return member;
}

// ---- what happens to them -----------------------------------------------------------------------

void Places::refused(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  refusal_ = why;
}

void Places::let_in(const PlaceTurn& turn) {
  const std::scoped_lock lock(mutex_);
  if (Place* const place = of(turn)) {
    place->let_in();
    changed();
  }
}

bool Places::is_taken(const Join& join, const std::string& worker) {
  const std::scoped_lock lock(mutex_);
  const int wished = place_for(join, worker);
  return wished >= 0 && wished < std::ssize(places_) && at(wished).is_connected();
}

std::optional<int> Places::join(const Join& join,
                                const WorkerHostActor& host,
                                const std::string& worker) {
  const std::scoped_lock lock(mutex_);
  const int wished = place_for(join, worker);
  const bool waits = wished >= 0 && wished < std::ssize(places_) && at(wished).is_free();
  if (!waits && !way_->starts_workers()) {
    return std::nullopt;  // keeps PC-1
  }
  if (!waits || (join.incarnation >= 0 && at(wished).incarnation() != join.incarnation)) {
    throw Error(Errc::ClusterMember,
                fmt::format("nobody waits for {} in place {} (incarnation {})",
                            worker,
                            join.place,
                            join.incarnation));
  }
  at(wished).join({.place = wished,
                   .incarnation = at(wished).incarnation(),
                   .host = host,
                   .port = join.port,
                   .process = join.process,
                   .host_name = join.host,
                   .processor = join.processor});
  changed();
  return wished;
}

void Places::process_ended(const PlaceTurn& turn, const std::string& how) {
  Settled settled;
  const std::scoped_lock lock(mutex_);
  if (Place* const place = of(turn)) {
    place->process_ended(how);
    settle(turn.place, settled);
    changed();
  }
}

void Places::disconnected(const caf::actor_addr& host) {
  bool is_silent = false;
  {
    Settled settled;
    const std::scoped_lock lock(mutex_);
    for (int place = 0; place < std::ssize(places_); ++place) {
      Place& there = at(place);
      if (there.member() && there.member()->host.address() == host) {
        there.disconnected(clock_->now());
        is_silent = is_silent || there.state() == PlaceState::Silent;
        settle(place, settled);
      }
    }
    changed();
  }
  if (is_silent) {
    remind_();
  }
}

void Places::condemn(const PlaceTurn& turn, const PlaceTurn& toward, const std::string& why) {
  Settled settled;
  const std::scoped_lock lock(mutex_);
  const Place* const peer = of(toward);
  const bool peer_is_condemned =
      peer != nullptr && peer->end() && peer->end()->kind == PlaceEnd::Kind::Condemned;
  if (peer == nullptr || peer_is_condemned) {
    return;  // both ends of a cut way report it
  }
  Place* const place = of(turn);
  if (place != nullptr && place->condemn(why)) {
    log(Level::Error, "worker process is ended", {{"place", turn.place}, {"why", why}});
    place->kill();
    settle(turn.place, settled);
    changed();
  }
}

void Places::lose_port(const std::string& why) {
  Settled settled;
  const std::scoped_lock lock(mutex_);
  port_loss_ = why;
  for (int place = 0; place < std::ssize(places_); ++place) {
    if (at(place).condemn(why)) {
      at(place).kill();
      settle(place, settled);
    }
  }
  log(Level::Error, "all worker processes are ended", {{"why", why}});
  changed();
}

void Places::look() {
  Settled settled;
  const std::scoped_lock lock(mutex_);
  for (int place = 0; place < std::ssize(places_); ++place) {
    at(place).look(clock_->now());
    settle(place, settled);
  }
  changed();
}

// ---- who is there -------------------------------------------------------------------------------

std::optional<FleetMember> Places::member(int place) const {
  const std::scoped_lock lock(mutex_);
  return at(place).is_connected() ? at(place).member() : std::nullopt;
}

std::optional<FleetMember> Places::member_at(const caf::node_id& node) const {
  const std::scoped_lock lock(mutex_);
  return find([&](const FleetMember& m) { return m.host.node() == node; });
}

std::optional<FleetMember> Places::member_with(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  return find([&](const FleetMember& m) { return m.port.key == key; });
}

int Places::count() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(places_.size());
}

WorkerPlace Places::who(int place) const {
  const std::scoped_lock lock(mutex_);
  if (place >= std::ssize(places_)) {
    return {};
  }
  const Place& there = at(place);
  WorkerPlace who{.lost = there.is_lost(), .incarnation = there.incarnation()};
  who.process = text_.process_id(there);
  if (there.member()) {
    who.address = there.member()->port.endpoint;
    who.host = way_->is_elsewhere() ? there.member()->host_name : "";
    who.processor = there.member()->processor;
  }
  return who;
}

std::string Places::loss_of_port() const {
  const std::scoped_lock lock(mutex_);
  return port_loss_;
}

std::int64_t Places::incarnation(int place) const {
  const std::scoped_lock lock(mutex_);
  return at(place).incarnation();
}

std::string Places::name_of(int place) const {
  const std::scoped_lock lock(mutex_);
  return text_.process(place, at(place));
}

Future<std::string> Places::cause_of_end(const PlaceTurn& turn) const {
  const std::scoped_lock lock(mutex_);
  if (at(turn.place).incarnation() == turn.incarnation) {
    return at(turn.place).cause()->future();
  }
  Promise<std::string> unknown;
  (void)unknown.set_value("");
  return unknown.future();
}

// ---- under the lock -----------------------------------------------------------------------------

Place* Places::of(const PlaceTurn& turn) {
  Place& place = at(turn.place);
  return place.incarnation() == turn.incarnation ? &place : nullptr;
}

int Places::place_for(const Join& join, const std::string& worker) {
  const int own = worker_number(worker).value_or(-1);
  if (way_->starts_workers() || (own >= 0 && own < std::ssize(places_))) {
    if (join.place >= 0 && join.place != own) {
      refusal_ = fmt::format("a process with the certificate of {} asked for the place of {}",
                             worker,
                             worker_name(join.place));
      log(Level::Warning, "worker refused", {{"why", refusal_}});
      throw Error(Errc::ClusterMember,
                  fmt::format("the certificate of this process is that of {0}, and it asks for the "
                              "place of {1}: start it with the credentials of {1}, or without "
                              "--place",
                              worker,
                              worker_name(join.place)));
    }
    return own;
  }
  for (int place = 0; place < std::ssize(places_); ++place) {
    const bool was_lost = at(place).is_free() && at(place).incarnation() > 0;
    if (was_lost && (join.place < 0 || join.place == place)) {
      return place;
    }
  }
  return -1;
}

template <class Condition>
std::optional<FleetMember> Places::find(Condition condition) const {
  for (const Place& place : places_) {
    if (place.is_connected() && condition(*place.member())) {
      return place.member();
    }
  }
  return std::nullopt;
}

void Places::settle(int place, Settled& settled) const {
  const Place& there = at(place);
  if (there.end()) {
    settled.add(there, text_.cause(place, there, stood_still_(options_.silence + kMoment)));
  }
}

}  // namespace stagecraft
