#include "stagecraft/actors/launch/fleet/fleet.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/launch/fleet/cut_links.h"
#include "stagecraft/actors/launch/port/file_limit.h"
#include "stagecraft/actors/launch/ways/rank_processes.h"
#include "stagecraft/actors/launch/ways/started_worker.h"
#include "stagecraft/actors/launch/ways/ways.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

/// A wait longer than the first is reported, and again at intervals of the second.
constexpr std::chrono::seconds kPatienceOfPeople{1}, kTellAgain{5};

std::shared_ptr<Places> make_places(ActorHost& host,
                                    const SpawnOptions& options,
                                    std::shared_ptr<const WorkerWay> way,
                                    std::shared_ptr<const Clock> clock,
                                    Places::StoodStill stood_still) {
  const auto weak = std::make_shared<std::weak_ptr<Places>>();  // set below
  auto places = std::make_shared<Places>(
      options,
      std::move(way),
      std::move(clock),
      [&host, weak] {
        call_later(host, kMoment, [weak] {
          if (const auto here = weak->lock()) {
            here->look();
          }
        });
      },
      std::move(stood_still));
  *weak = places;
  return places;
}

}  // namespace

Fleet::Fleet(const SpawnOptions& options, std::shared_ptr<const Clock> clock)
    : Fleet(options, clock, std::shared_ptr<const WorkerWay>(way_of(options))) {}

Fleet::Fleet(const SpawnOptions& options,
             const std::shared_ptr<const Clock>& clock,
             const std::shared_ptr<const WorkerWay>& way)
    : Fleet(options, clock, way, real_ground(options, clock, way)) {}

Fleet::Fleet(const SpawnOptions& options,
             std::shared_ptr<const Clock> clock,
             std::shared_ptr<const WorkerWay> way,
             std::unique_ptr<FleetGround> ground)
    : options_(options),
      clock_(std::move(clock)),
      way_(std::move(way)),
      ground_(std::move(ground)),
      host_(ground_->host()),
      places_(make_places(host_, options, way_, clock_, ground_->standstills())),
      processors_(options.tell),
      port_(ground_->open_port(CutLinks(host_, places_, options.join_deadline))) {}

Fleet::~Fleet() {
  if (!home_.is_here()) {
    return;  // the workers are the parent's, and a lock may be held by a thread that is not here
  }
  ground_->close();
  try {
    for (int place = 0, count = places_->count(); place < count; ++place) {
      if (places_->member(place)) {
        note_in_log(options_, place, places_->incarnation(place), "ends with its cluster");
      }
    }
  } catch (const std::exception& error) {
    log(Level::Warning, "the end of a cluster is not in its logs", {{"why", error.what()}});
  }
}

AdmissionEvents Fleet::events() {
  // No event keeps the fleet alive: its places are gone when it is.
  const std::weak_ptr<Places> weak = places_;
  const CutLinks cuts(host_, places_, options_.join_deadline);
  const auto line = [options = options_, way = way_](
                        const Places& places, int place, const Join& join) {
    note_in_log(options,
                place,
                places.incarnation(place),
                fmt::format("runs in process {} on {}, tensors arrive at {}",
                            join.process,
                            join.host,
                            join.port.endpoint));
    if (way->is_elsewhere() && options.tell) {
      options.tell(fmt::format("{}: {}, tensors arrive at {}",
                               ranks_text(options, place),
                               places.name_of(place),
                               places.who(place).address));
    }
  };
  return {
      .refused =
          [weak](const std::string& why) {
            if (const auto places = weak.lock()) {
              places->refused(why);
            }
          },
      .joins =
          [weak, line](const Join& join, const WorkerHostActor& host, const std::string& worker) {
            const auto places = weak.lock();
            const auto place = places ? places->join(join, host, worker) : std::nullopt;
            if (place) {
              line(*places, *place, join);
            }
            return place.has_value();
          },
      .is_taken =
          [weak](const Join& join, const std::string& worker) {
            const auto places = weak.lock();
            return places && places->is_taken(join, worker);
          },
      .disconnected =
          [weak](const caf::actor_addr& host) {
            if (const auto places = weak.lock()) {
              places->disconnected(host);
            }
          },
      .cut =
          [cuts, here = port_->address().key](
              const caf::node_id& from, const std::string& key, const Error& why) {
            key == here ? cuts.cut_to_here(from, why) : cuts.cut_between(from, key, why);
          }};
}

void Fleet::require(int places) {
  way_->require_places(places);
  require_files(places);
  bool is_first = false;
  std::call_once(opened_, [&] {
    ground_->admit(events());
    is_first = true;
  });
  for (const PlaceTurn& turn : places_->grow_to(places)) {
    call(turn);
  }
  if (is_first) {
    const std::string address = ground_->address();
    tell(fmt::format("workers join at {}; tensors for this process arrive at {}",
                     address,
                     port_->address().endpoint));
    if (const std::string advice = way_->start_advice(ground_->way_to_join({})); !advice.empty()) {
      tell(advice);
    }
    ground_->tell_address();
  }
  std::vector<int> all;
  for (int place = 0; place < places; ++place) {
    all.push_back(place);
  }
  wait_for(all);
}

void Fleet::tell(const std::string& line) const {
  if (way_->is_elsewhere() && options_.tell) {
    options_.tell(line);
  }
}

void Fleet::replace(int place) {
  for (std::string why = "its host did not take another worker";;) {
    if (const auto old = places_->vacate(place)) {
      port_->forget(old->port);
    }
    if (const auto host = way_->prepare(place)) {
      const std::string line = fmt::format("goes to {}: {}", *host, why);
      note_in_log(options_, place, places_->incarnation(place), line);
      tell(fmt::format("{} {}", ranks_text(options_, place), line));
    }
    call({place, places_->incarnation(place)});
    try {
      return wait_for({place});
    } catch (const Error& error) {
      const bool has_not_come =
          error.code() == Errc::ClusterMember || error.code() == Errc::ClusterTimeout;
      if (!has_not_come || !way_->give_up(place)) {
        throw;
      }
      why = error.text();
    }
  }
}

void Fleet::call(const PlaceTurn& turn) {
  ground_->renew(turn);
  places_->call(turn.place);
}

void Fleet::start(const PlaceTurn& turn) {
  const std::weak_ptr<Places> weak = places_;
  const auto on_let_in = [weak, turn] {
    if (const auto places = weak.lock()) {
      places->let_in(turn);
    }
  };
  const auto on_end = [weak, turn, options = options_, way = way_](const std::string& how) {
    if (const auto places = weak.lock()) {
      places->process_ended(turn, how);
      note_in_log(options, turn.place, turn.incarnation, way->end_text(turn.place, how));
    }
  };
  places_->keep(turn, ground_->start(turn, on_let_in, on_end));
}

/// Keeps FL-4.
void Fleet::start_those_in_turn() {
  const std::vector<PlaceTurn> turns = places_->take_turns();
  for (std::size_t i = 0; i < turns.size(); ++i) {
    try {
      start(turns[i]);
    } catch (const Error&) {
      for (; i < turns.size(); ++i) {
        places_->take_back(turns[i]);
      }
      throw;
    }
  }
}

void Fleet::wait_for(const std::vector<int>& places) {
  const Clock::Time started = clock_->now();
  const Clock::Time deadline = started + options_.join_deadline;
  Clock::Time next_word = started + kPatienceOfPeople;
  bool has_told = false;
  start_those_in_turn();
  for (MissingWorkers missing = places_->missing_of(places); !missing.places.empty();) {
    if (const std::string loss = places_->loss_of_port(); !loss.empty()) {
      throw Error(Errc::TransportClosed, loss);
    }
    const Clock::Time now = clock_->now();
    if (!missing.failure.empty() || now >= deadline) {
      throw_missing(missing);
    }
    if (now >= next_word) {
      tell(text_.missing(missing.awaited, missing.places));
      next_word = now + kTellAgain;
      has_told = true;
    }
    places_->wait_for_change(missing, std::min(deadline, next_word));
    start_those_in_turn();
    MissingWorkers after = places_->missing_of(places);
    if (has_told && after.places != missing.places) {
      next_word = clock_->now();  // people see each one come
    }
    missing = std::move(after);
  }
  if (const std::string loss = places_->loss_of_port(); !loss.empty()) {
    throw Error(Errc::TransportClosed, loss);  // the last worker joined after it
  }
}

void Fleet::throw_missing(const MissingWorkers& missing) const {
  const std::string why = missing.refusal.empty() ? "" : ": " + missing.refusal;
  if (!missing.failure.empty()) {
    throw Error(Errc::ClusterMember,
                fmt::format("worker {} before it had joined{}; it has said why on standard error",
                            missing.failure,
                            why));
  }
  const std::string text = text_.missing(missing.awaited, missing.places) + why;
  throw Error(Errc::ClusterTimeout,
              text_.late(text, ground_->way_to_join({missing.places.front()})));
}

std::string Fleet::name_of(int place) const {
  return "worker " + places_->name_of(place);
}

FleetMember Fleet::member(int place) const {
  if (auto member = places_->member(place)) {
    return *std::move(member);
  }
  throw_lost({place, places_->incarnation(place)});
}

void Fleet::throw_lost(const PlaceTurn& turn) const {
  const Future<std::string> known = places_->cause_of_end(turn);
  const std::string cause =
      known.wait_until(clock_->now() + kCauseLimit, *clock_) ? known.get() : "";
  throw Error(Errc::ClusterMember,
              fmt::format("{} of this cluster is lost{}{}",
                          worker_name(turn.place),
                          cause.empty() ? "" : ", as ",
                          cause))
      .advise("put another worker process in its place with cluster.replace");
}

WorkerPlace Fleet::who(int place) const {
  WorkerPlace who = places_->who(place);
  if (!who.processor.capability.empty()) {
    who.processor = processors_.held(who.processor);
  }
  return who;
}

}  // namespace stagecraft
