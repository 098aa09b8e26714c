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

World::Time Network::time_of_arrival(const Way& way) {
  // Mostly quick, sometimes slow, rarely very slow: the rare orders are what a simulation is for.
  Random& random = world_.random();
  const auto delay = random.one_in(50) ? random.up_to(20ms) : random.up_to(100us);
  World::Time& last = last_[way];
  last = std::max(last + 1ns, world_.clock().now() + delay);
  return last;
}

void Network::send(ProcessNumber from, ProcessNumber to, Plane plane, Arrive arrives) {
  if (has_ended(from) || has_ended(to)) {
    return;
  }
  const Way way{from, to, plane};
  world_.at(time_of_arrival(way),
            [this, way, arrives = std::move(arrives)] { arrive(way, arrives); });
}

void Network::arrive(const Way& way, const Arrive& arrives) {
  const ProcessNumber to = std::get<1>(way);
  const auto cut = cuts_.find(way);
  if (has_ended(to) || (cut != cuts_.end() && world_.clock().now() >= cut->second)) {
    return;
  }
  if (world_.is_stopped(to)) {
    held_[to].push_back(arrives);
    return;
  }
  arrives();
}

void Network::resume(ProcessNumber process) {
  world_.resume(process);
  for (const Arrive& arrives : std::exchange(held_[process], {})) {
    arrives();
  }
}

void Network::hold(ProcessNumber a, ProcessNumber b, Plane plane, World::Time until) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    World::Time& last = last_[{from, to, plane}];
    last = std::max(last, until);
  }
  disturb(plane, until);
}

void Network::disturb(Plane plane, World::Time until) {
  World::Time& last = disturbed_until_[static_cast<std::size_t>(plane)];
  last = std::max(last, until);
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
      system.next_actor_id(), system.node(), &system, config, *this, actor, there, here);
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

void Network::end(ProcessNumber process, Arrive learned) {
  Random& random = world_.random();
  const World::Time now = world_.clock().now();
  const World::Time when = time_of_arrival({process, 0, Plane::Control});
  ended_.insert(process);
  for (const auto& [way, last] : last_) {
    if (std::get<0>(way) == process && last > now && random.one_in(2)) {
      cuts_[way] = now + random.up_to(last - now);
    }
  }
  held_.erase(process);
  world_.resume(process);  // its actors end, though nobody hears of them
  world_.at(when, [this, process, learned = std::move(learned)] {
    for (const auto& [of, handle] : handles_) {
      if (std::get<0>(of) == process && std::get<2>(of) == 0) {
        kill_handle(handle, caf::exit_reason::remote_link_unreachable);
      }
    }
    learned();
  });
}

}  // namespace stagecraft::simulation
