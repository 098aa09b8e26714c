#include "stagecraft/actors/caf_types.h"

#include <string>
#include <tuple>

#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

/// Hosts that hold an actor nobody could end. Never destroyed: such an actor may still run.
void keep_for_ever(std::shared_ptr<ActorHost> host) {
  static auto* const kept = new std::vector<std::shared_ptr<ActorHost>>;
  static std::mutex guards_kept;
  const std::scoped_lock lock(guards_kept);
  kept->push_back(std::move(host));
}

}  // namespace

ActorHost::Config::Config() {
  int number = 0;
  const auto add = [&]<class... M>(std::tuple<M...>*) {
    (add_message_type<M>("stagecraft::message" + std::to_string(number++)), ...);
  };
  add(static_cast<MessageTypes*>(nullptr));
  // Wakes an idle actor ten times faster than work stealing does.
  set("scheduler.policy", caf::atom("sharing"));
}

ActorHost::ActorHost() : system_(config_) {}

int ActorHost::end(const std::vector<caf::actor>& actors, Deadline deadline) {
  caf::scoped_actor self(system_);
  for (const caf::actor& actor : actors) {
    self->monitor(actor);
    self->send_exit(actor, caf::exit_reason::user_shutdown);
  }
  auto left = actors.size();
  bool in_time = true;
  while (left > 0 && in_time) {
    const auto patience =
        std::max(deadline - std::chrono::steady_clock::now(), Deadline::duration(0));
    self->receive([&](const caf::down_msg&) { --left; },
                  caf::after(caf::timespan(patience)) >> [&] { in_time = false; });
  }
  if (left > 0) {
    log(Level::Warning, "actors left behind", {{"count", left}});
    leave_behind();
  }
  return static_cast<int>(left);
}

void ActorHost::leave_behind() {
  keep_for_ever(shared_from_this());
}

}  // namespace stagecraft
