#include "stagecraft/tests/simulate/network.h"

#include <algorithm>
#include <utility>

#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/make_actor.hpp>
#include <caf/system_messages.hpp>

namespace stagecraft::simulation {
namespace {

using namespace std::chrono_literals;

constexpr auto kUsualDelay = 100us;

/// Handle is an actor of another process, as CAF's proxy of a remote actor is.
class Handle final : public caf::actor_proxy {
 public:
  Handle(caf::actor_config& config,
         Network& network,
         caf::strong_actor_ptr actor,
         ProcessNumber there,
         ProcessNumber here)
      : actor_proxy(config),
        network_(network),
        actor_(std::move(actor)),
        there_(there),
        here_(here) {}

  void enqueue(caf::mailbox_element_ptr what, caf::execution_unit*) override {
    const caf::strong_actor_ptr sender =
        what->sender == nullptr ? nullptr : network_.handle(what->sender, here_, there_);
    network_.send(here_,
                  there_,
                  Plane::Control,
                  [actor = actor_,
                   sender,
                   id = what->mid,
                   content = what->move_content_to_message()]() mutable {
                    actor->enqueue(sender, id, std::move(content), nullptr);
                  });
  }

  [[nodiscard]] ProcessNumber process() const { return there_; }
  [[nodiscard]] caf::actor actor() const { return caf::actor_cast<caf::actor>(actor_); }

  void kill_proxy(caf::execution_unit* context, caf::error reason) override {
    cleanup(std::move(reason), context);
  }

 private:
  Network& network_;
  const caf::strong_actor_ptr actor_;
  const ProcessNumber there_, here_;
};

}  // namespace

/// Ends the handle for all actors that monitor it.
void Network::kill_handle(const caf::strong_actor_ptr& handle, const caf::error& why) {
  dynamic_cast<Handle&>(*caf::actor_cast<caf::abstract_actor*>(handle)).kill_proxy(nullptr, why);
}

/// Ends what a process knows of another one's actors.
void Network::kill_handles(ProcessNumber there, ProcessNumber here) {
  for (const auto& [of, handle] : handles_) {
    if (std::get<0>(of) == there && std::get<2>(of) == here) {
      kill_handle(handle, caf::exit_reason::remote_link_unreachable);
    }
  }
}

World::Time Network::time_of_arrival(const Way& way) {
  // Mostly quick, sometimes slow, rarely very slow: the rare orders are what a simulation is for.
  Random& random = world_.random();
  const auto delay = random.one_in(50) ? random.up_to(20ms) : random.up_to(kUsualDelay);
  World::Time& last = last_[way];
  last = std::max(last + 1ns, world_.clock().now() + delay);
  if (const auto [from, to, plane] = way;
      plane == Plane::Data && last > world_.clock().now() + kUsualDelay) {
    late_tensors_[{from, to}] = last;
  }
  return last;
}

World::Time Network::after_silence() {
  return world_.clock().now() + kSilence +
         world_.random().up_to(1s);  // heartbeats come once a second
}

// ---- what is sent arrives -----------------------------------------------------------------------

void Network::send(ProcessNumber from, ProcessNumber to, Plane plane, Arrive arrives) {
  if (has_ended(from) || has_ended(to)) {
    return;
  }
  const Way way{from, to, plane};
  std::int64_t number = 0;
  if (plane == Plane::Control) {
    const Connection& connection = connections_[std::max(from, to)];
    if (connection.is_broken ||
        (from == 0 ? connection.has_ended_here : connection.has_ended_there)) {
      return;
    }
  } else {
    number = ++streams_[{from, to}].sent;
    if (is_blocked_for_long(from, to)) {
      expect_cut(from, to);
    } else {
      disturb(plane, blocked_until(from, to));
    }
  }
  world_.at(time_of_arrival(way),
            [this, way, number, arrives = std::move(arrives)] { arrive(way, number, arrives); });
  if (plane == Plane::Data) {
    const auto [begin, end] = awaited_.equal_range({from, to});
    for (auto one = begin; one != end; ++one) {
      if (one->second.number == number) {
        world_.at(world_.clock().now(), one->second.event);
      }
    }
  }
}

void Network::after_tensors(ProcessNumber from, ProcessNumber to, int count, Arrive event) {
  const auto found = streams_.find({from, to});  // is not made: it says that the way was in use
  const std::int64_t sent = found == streams_.end() ? 0 : found->second.sent;
  awaited_.emplace(std::pair(from, to), Awaited{sent + count, std::move(event)});
}

void Network::arrive(const Way& way, std::int64_t number, const Arrive& arrives) {
  const auto cut = cuts_.find(way);
  if (cut != cuts_.end() && world_.clock().now() >= cut->second) {
    return;
  }
  if (const auto stream = streams_.find({std::get<0>(way), std::get<1>(way)});
      number > 0 && number <= stream->second.lost_up_to &&
      world_.clock().now() >= stream->second.lost_from) {
    return;
  }
  run_in(std::get<1>(way), [this, way, number, arrives] {
    if (takes(way, number)) {
      arrives();
    }
  });
}

/// Returns whether the receiver takes what has arrived: not after its end of the connection, nor
/// after a loss. Keeps NW-2 and NW-3.
bool Network::takes(const Way& way, std::int64_t number) {
  const auto [from, to, plane] = way;
  if (plane == Plane::Control) {
    const Connection& connection = connections_[std::max(from, to)];
    return to == 0 ? !connection.has_ended_here : !connection.has_ended_there;
  }
  Stream& stream = streams_[{from, to}];
  if (!stream.is_broken && number != stream.arrived + 1) {
    stream.is_broken = true;
    discoveries_.broke(from, to);
  }
  stream.arrived = number;
  return !stream.is_broken;
}

void Network::in(ProcessNumber process, World::Time when, Arrive event) {
  world_.at(when, [this, process, event = std::move(event)] { run_in(process, event); });
}

void Network::run_in(ProcessNumber process, const Arrive& event) {
  if (has_ended(process)) {
    return;
  }
  if (world_.is_stopped(process)) {
    stopped_[process].arrived.push_back(event);
    return;
  }
  world_.as(process, event);
}

// ---- ends of processes and of connections -------------------------------------------------------

/// Tells the other end of a control connection that this one has ended, after all that was sent.
void Network::tell_end(ProcessNumber from, ProcessNumber to, Arrive learned) {
  if (!connections_[std::max(from, to)].is_broken) {
    in(to, time_of_arrival({from, to, Plane::Control}), std::move(learned));
  }
}

void Network::give_up(ProcessNumber process) {
  Connection& connection = connections_[process];
  if (connection.has_ended_here) {
    return;
  }
  connection.has_ended_here = true;
  tell_end(0, process, [this, process] { lose_driver(process); });
  kill_handles(process, 0);
  discoveries_.gave_up(process);
}

void Network::lose_driver(ProcessNumber process) {
  Connection& connection = connections_[process];
  if (connection.has_ended_there) {
    return;
  }
  connection.has_ended_there = true;
  tell_end(process, 0, [this, process] { give_up(process); });
  kill_handles(0, process);
  discoveries_.lost_driver(process);
}

/// Loses what is on this way, from some instant on.
void Network::cut_off(const Way& way) {
  const World::Time now = world_.clock().now();
  if (const World::Time last = last_[way]; last > now && world_.random().one_in(2)) {
    cuts_[way] = now + world_.random().up_to(last - now);
  }
}

void Network::end(ProcessNumber process) {
  tell_end(process, 0, [this, process] { give_up(process); });
  ended_.insert(process);
  for (const auto& [way, last] : last_) {
    if (std::get<0>(way) == process) {
      cut_off(way);
    }
  }
  for (const auto& [way, stream] : streams_) {
    if (way.second == process && stream.sent > 0) {
      report_cut(way.first, process, nullptr);
    }
  }
  stopped_.erase(process);
  world_.resume(process);  // its actors end, though nobody hears of them
}

void Network::end_driver() {
  stopped_.erase(0);
  world_.resume(0);
  for (auto& [process, connection] : connections_) {
    if (!std::exchange(connection.has_ended_here, true)) {
      cut_off({0, process, Plane::Control});
      tell_end(0, process, [this, process = process] { lose_driver(process); });
    }
  }
}

bool Network::break_control(ProcessNumber process) {
  Connection& connection = connections_[process];
  if (connection.is_broken || connection.has_ended_here || connection.has_ended_there) {
    return false;
  }
  connection.is_broken = true;
  delay_messages(process, World::Time::max());
  cut_off({0, process, Plane::Control});
  cut_off({process, 0, Plane::Control});
  const auto found_out = [this] {
    Random& random = world_.random();
    return random.one_in(2) ? world_.clock().now() + random.up_to(20ms) : after_silence();
  };
  const Disturbance lasts = disturb();
  in(0, found_out(), [this, process, lasts] { give_up(process); });
  in(process, found_out(), [this, process, lasts] { lose_driver(process); });
  return true;
}

bool Network::break_data(ProcessNumber from, ProcessNumber to) {
  const auto found = streams_.find({from, to});
  if (found == streams_.end() || has_ended(from) || has_ended(to)) {
    return false;
  }
  Random& random = world_.random();
  const World::Time now = world_.clock().now();
  World::Time& last = last_[{from, to, Plane::Data}];
  if (last > now && !random.one_in(3)) {
    found->second.lost_from = now + random.up_to(last - now);
    found->second.lost_up_to = found->second.sent;
  }
  last = std::max(last, now) + random.up_to(300ms);  // it is connected again
  if (!is_blocked_for_long(from, to)) {
    disturb(Plane::Data, last);
  }
  report_cut(from, to, disturb({Plane::Data}));
  return true;
}

/// As PeerWatch does.
void Network::report_cut(ProcessNumber from, ProcessNumber to, Disturbance lasts) {
  const auto later = 250ms + world_.random().up_to(1s);
  in(from, world_.clock().now() + later, [this, from, to, lasts = std::move(lasts)] {
    if (!std::exchange(streams_[{from, to}].is_reported, true)) {
      discoveries_.cut(from, to);
    }
  });
}

/// A tensor that nobody acknowledges for kSilence breaks the way.
void Network::expect_cut(ProcessNumber from, ProcessNumber to) {
  if (!std::exchange(streams_[{from, to}].expects_cut, true)) {
    in(from, after_silence(), [this, from, to, lasts = disturb({Plane::Data})] {
      (void)break_data(from, to);
    });
  }
}

// ---- delays -------------------------------------------------------------------------------------

void Network::stop(ProcessNumber process, World::Time::duration span, bool with_clock) {
  world_.stop(process);
  delay_messages(process, world_.clock().now() + span);
  const Disturbance lasts = disturb();
  stopped_[process].lasts = lasts;
  const auto if_stopped = [stop = std::weak_ptr(lasts)](Arrive event) {
    return [stop, event = std::move(event)] {
      if (!stop.expired()) {  // it has not ended either
        event();
      }
    };
  };
  world_.at(world_.clock().now() + span, if_stopped([this, process, span, with_clock] {
              if (with_clock) {
                world_.shift_clock(process, -span);
              }
              resume(process);
            }));
  if (span <= kSilence) {
    return;
  }
  if (process != 0) {
    in(0, after_silence(), if_stopped([this, process] { give_up(process); }));
    return;
  }
  for (const auto& [other, connection] : connections_) {
    in(other, after_silence(), if_stopped([this, other = other] { lose_driver(other); }));
  }
}

void Network::resume(ProcessNumber process) {
  world_.resume(process);
  if (process == 0) {
    driver_continued_ = world_.clock().now();
  }
  const Stopped stopped = std::move(stopped_.extract(process).mapped());
  for (const Arrive& event : stopped.arrived) {
    run_in(process, event);  // one may end it
  }
}

void Network::set_clock_ahead(ProcessNumber process, World::Time::duration span) {
  constexpr std::chrono::minutes kLongestTimer{1};
  const World::Time now = world_.clock().now();
  world_.shift_clock(process, span);
  delay_messages(process, now + kLongestTimer);  // a deadline may be found over so much later
  disturb(now);
  if (process == 0) {
    driver_continued_ = now;
  }
}

void Network::hold(ProcessNumber a, ProcessNumber b, Plane plane, World::Time until) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    World::Time& last = last_[{from, to, plane}];
    last = std::max(last, until);
  }
  if (plane == Plane::Control) {
    delay_messages(std::max(a, b), until);
  }
  disturb(plane, until);
}

void Network::block(ProcessNumber from, ProcessNumber to, World::Time until) {
  World::Time& blocked = blocked_[{from, to}];
  blocked = std::max(blocked, until);
  const bool for_long = is_blocked_for_long(from, to);
  if (from == 0 || to == 0) {
    delay_messages(std::max(from, to), until);
  }
  for (const Plane plane : {Plane::Control, Plane::Data}) {
    World::Time& last = last_[{from, to, plane}];
    const bool is_waited_for = plane == Plane::Data && last > world_.clock().now();
    last = std::max(last, until);
    if (!for_long) {
      disturb(plane, until);
    } else if (is_waited_for) {
      expect_cut(from, to);
    }
  }
  if (!for_long) {
    return;
  }
  if (to == 0) {
    in(0, after_silence(), [this, from, lasts = disturb()] { give_up(from); });
  } else if (from == 0) {
    in(to, after_silence(), [this, to, lasts = disturb()] { lose_driver(to); });
  }
}

World::Time Network::blocked_until(ProcessNumber from, ProcessNumber to) const {
  const auto found = blocked_.find({from, to});
  return found == blocked_.end() ? World::Time{} : found->second;
}

/// Returns whether what is sent now, or the answer that it has arrived, is late by kSilence.
bool Network::is_blocked_for_long(ProcessNumber from, ProcessNumber to) const {
  return std::max(blocked_until(from, to), blocked_until(to, from)) >
         world_.clock().now() + kSilence;
}

// ---- what faults disturb ------------------------------------------------------------------------

World::Time Network::disturbed_until(Plane plane) const {
  const World::Time known = disturbed_until_[index(plane)];
  return is_disturbed(plane) ? std::max(known, world_.clock().now()) : known;
}

World::Time Network::messages_late_until(ProcessNumber process) const {
  const auto of = [this](ProcessNumber one) {
    const auto found = messages_late_until_.find(one);
    return found == messages_late_until_.end() ? World::Time{} : found->second;
  };
  return std::max(of(0), of(process));
}

void Network::delay_messages(ProcessNumber process, World::Time until) {
  World::Time& last = messages_late_until_[process];
  last = std::max(last, until);
}

void Network::disturb(Plane plane, World::Time until) {
  World::Time& last = disturbed_until_[index(plane)];
  last = std::max(last, until);
}

void Network::disturb(World::Time until) {
  disturb(Plane::Control, until);
  disturb(Plane::Data, until);
}

Network::Disturbance Network::disturb(const std::vector<Plane>& planes) {
  for (const Plane plane : planes) {
    ++disturbances_[index(plane)];
  }
  const auto ends = [network = weak_from_this(), planes](const void*) {
    if (const auto alive = network.lock()) {
      for (const Plane plane : planes) {
        --alive->disturbances_[index(plane)];
        alive->disturb(plane, alive->world_.clock().now());
      }
    }
  };
  return {static_cast<const void*>(this), ends};
}

// ---- handles ------------------------------------------------------------------------------------

caf::node_id Network::node_of(ProcessNumber process) const {
  if (process == 0) {
    return world_.host().system().node();
  }
  return *caf::make_node_id(static_cast<std::uint32_t>(process), std::string(40, 'f'));
}

ProcessNumber Network::process_of(const caf::strong_actor_ptr& handle) {
  return dynamic_cast<Handle&>(*caf::actor_cast<caf::abstract_actor*>(handle)).process();
}

std::vector<caf::actor> Network::actors_of(ProcessNumber process) const {
  std::vector<caf::actor> actors;
  for (const auto& [of, handle] : handles_) {
    if (std::get<0>(of) == process) {
      actors.push_back(
          dynamic_cast<Handle&>(*caf::actor_cast<caf::abstract_actor*>(handle)).actor());
    }
  }
  return actors;
}

caf::strong_actor_ptr Network::handle(const caf::strong_actor_ptr& actor,
                                      ProcessNumber there,
                                      ProcessNumber here) {
  caf::strong_actor_ptr& known = handles_[{there, actor->id(), here}];
  if (known != nullptr) {
    return known;
  }
  caf::actor_system& system = world_.host().system();
  caf::actor_config config;
  known = caf::make_actor<Handle, caf::strong_actor_ptr>(
      system.next_actor_id(), node_of(there), &system, config, *this, actor, there, here);
  const caf::strong_actor_ptr handle = known;
  caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor(
      [network = weak_from_this(), there, here, handle](const caf::error& why) {
        if (const auto alive = network.lock()) {
          alive->send(there, here, Plane::Control, [alive = alive.get(), handle, why] {
            alive->kill_handle(handle, why);
          });
        }
      });
  return handle;
}

}  // namespace stagecraft::simulation
