#include "stagecraft/actors/caf_types.h"

#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>

#include "stagecraft/base/log.h"

namespace stagecraft {
ActorHost::Config::Config() {
  const auto add = [&]<class... M>(std::tuple<M...>*) {
    (add_message_type<M>(std::string(kWireName<M>)), ...);
  };
  add(static_cast<MessageTypes*>(nullptr));
  // One per processor unless said: what runs there is short, and never an operator.
  set("scheduler.max-threads", std::size_t{4});
  // Wakes an idle actor ten times faster than work stealing does.
  set("scheduler.policy", caf::atom("sharing"));
}

ActorHost::ActorHost() : system_(config_) {}

ActorHost& ActorHost::of_this_process() {
  struct Made {
    std::mutex mutex;
    std::map<pid_t, ActorHost*> by_process;
  };
  static Made* const made = new Made;
  const std::scoped_lock lock(made->mutex);
  ActorHost*& host = made->by_process[getpid()];
  if (host == nullptr) {
    host = new ActorHost;
  }
  return *host;
}

int ActorHost::end(const std::vector<caf::actor>& actors, Deadline deadline) {
  auto left = actors.size();
  const auto wait_for_all = [&] {
    caf::scoped_actor self(system_);
    for (const caf::actor& actor : actors) {
      self->monitor(actor);
      self->send_exit(actor, caf::exit_reason::user_shutdown);
    }
    bool in_time = true;
    while (left > 0 && in_time) {
      const auto patience =
          std::max(deadline - std::chrono::steady_clock::now(), Deadline::duration(0));
      self->receive([&](const caf::down_msg&) { --left; },
                    caf::after(caf::timespan(patience)) >> [&] { in_time = false; });
    }
  };
  // The caller may be the destructor of a static object, whose thread has lost CAF's thread-local
  // objects by then.
  try {
    std::thread(wait_for_all).join();
  } catch (const std::system_error&) {  // there are no more threads to be had
    wait_for_all();
  }
  if (left > 0) {
    log(Level::Warning, "actors left behind", {{"count", left}});
  }
  return static_cast<int>(left);
}

}  // namespace stagecraft
