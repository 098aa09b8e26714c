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

/// Ends the handle for all who watch it.
void kill(const caf::strong_actor_ptr& handle) {
  dynamic_cast<Handle&>(*caf::actor_cast<caf::abstract_actor*>(handle))
      .kill_proxy(nullptr, caf::exit_reason::remote_link_unreachable);
}

}  // namespace

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
  world_.at(time_of_arrival({from, to, plane}),
            [this, from, to, arrives = std::move(arrives)] { arrive(from, to, arrives); });
}

void Network::arrive(ProcessNumber from, ProcessNumber to, const Arrive& arrives) {
  if (has_ended(to) || silenced_.contains(from)) {
    return;
  }
  if (world_.is_stopped(to)) {
    held_[to].emplace_back(from, arrives);
    return;
  }
  arrives();
}

void Network::resume(ProcessNumber process) {
  world_.resume(process);
  for (const auto& [from, arrives] : std::exchange(held_[process], {})) {
    arrive(from, process, arrives);
  }
}

void Network::hold(ProcessNumber a, ProcessNumber b, World::Time until) {
  for (const Plane plane : {Plane::Control, Plane::Data}) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      World::Time& last = last_[{from, to, plane}];
      last = std::max(last, until);
    }
  }
}

caf::strong_actor_ptr Network::handle(const caf::strong_actor_ptr& actor,
                                      ProcessNumber there,
                                      ProcessNumber here) {
  caf::actor_system& system = world_.host().system();
  caf::actor_config config;
  auto handle = caf::make_actor<Handle, caf::strong_actor_ptr>(
      system.next_actor_id(), system.node(), &system, config, *this, actor, there, here);
  if (here == 0) {
    handles_[there].push_back(handle);
    if (has_ended(there)) {
      kill(handle);
    }
    caf::actor_cast<caf::abstract_actor*>(actor)->attach_functor(
        [network = weak_from_this(), there, who = caf::actor_cast<caf::actor_addr>(handle)] {
          const auto alive = network.lock();
          if (alive == nullptr) {
            return;
          }
          alive->send(there, 0, Plane::Control, [who] {
            if (const auto left = caf::actor_cast<caf::strong_actor_ptr>(who)) {
              kill(left);
            }
          });
        });
  }
  return handle;
}

void Network::end(ProcessNumber process, Arrive learned) {
  const World::Time when = time_of_arrival({process, 0, Plane::Control});
  ended_.insert(process);
  if (world_.random().one_in(2)) {
    silenced_.insert(process);
  }
  held_.erase(process);
  world_.resume(process);  // its actors end, though nobody hears of them
  world_.at(when, [this, process, learned = std::move(learned)] {
    for (const caf::strong_actor_ptr& handle : std::exchange(handles_[process], {})) {
      kill(handle);
    }
    learned();
  });
}

}  // namespace stagecraft::simulation
