#include "stagecraft/actors/messages/actor_host.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <latch>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <caf/io/middleman.hpp>
#include <caf/openssl/manager.hpp>

#include "stagecraft/actors/messages/process_actors.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/standard_lack_of_memory.h"

namespace stagecraft {
namespace {

/// Throws unless a system can have its threads. Where one of them fails, the constructor of CAF
/// 0.17 destroys what those before it wait for, and waits for them for ever. So all are tried
/// first, and as much memory as the system takes meanwhile.
void require_threads() {
  constexpr int kThreads = 8;  // at most: those of the scheduler, of its clock and of the network
  constexpr std::size_t kMemory = std::size_t{32} << 20U;
  std::latch end(1);
  std::vector<std::thread> threads;
  std::optional<Error> lack;
  try {
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&end] { end.wait(); });
    }
    void* const memory =
        mmap(nullptr, kMemory, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::bad_alloc();
    }
    munmap(memory, kMemory);
  } catch (const std::exception& error) {
    lack = standard_lack_of_memory(
        error, "raise what limits threads (ulimit -u) or addresses (ulimit -v)");
  }
  end.count_down();
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (lack) {
    throw Error(*lack);
  }
}

}  // namespace

ActorHost::Config::Config(const ControlLink* link, bool simulated) {
  const auto add = [&]<class... M>(std::tuple<M...>*) {
    (add_message_type<M>(std::string(kWireName<M>)), ...);
  };
  add(static_cast<MessageTypes*>(nullptr));
  // The default is one per processor. Work here is short, and never an operator.
  set("scheduler.max-threads", std::size_t{4});
  // Wakes an idle actor ten times faster than work stealing.
  set("scheduler.policy", simulated ? caf::atom("testing") : caf::atom("sharing"));
  if (link != nullptr) {
    add(static_cast<ProcessMessageTypes*>(nullptr));
    add_message_type<PlanActor>("stagecraft.PlanActor");
    add_message_type<AgentActor>("stagecraft.AgentActor");
    add_message_type<RankStarted>("stagecraft.RankStarted");
    openssl_certificate = link->certificate;
    openssl_key = link->key;
    openssl_cafile = link->authority;
    set("middleman.heartbeat-interval", caf::timespan(link->interval));
    set("middleman.connection-timeout", caf::timespan(link->silence));
    set("middleman.workers",
        std::size_t{0});  // decode where it reads: makes a round trip twice as quick
    load<caf::io::middleman>();
    load<caf::openssl::manager>();
  }
}

ActorHost::ActorHost(const ControlLink* link, bool simulated)
    : is_simulated_(simulated), config_(link, simulated), system_(config_) {}

ActorHost& ActorHost::with_link(const ControlLink& link) {
  require_threads();
  return *new ActorHost(&link);  // keeps AH-1
}

ActorHost& ActorHost::simulated() {
  return *new ActorHost(nullptr, /*simulated=*/true);  // keeps AH-1
}

ActorHost& ActorHost::of_this_process() {
  struct Made {
    std::mutex mutex;
    std::map<pid_t, ActorHost*> by_process;
  };
  static Made* const made = new Made;
  const std::scoped_lock lock(made->mutex);
  ActorHost*& host = made->by_process[getpid()];
  if (host == nullptr) {
    require_threads();
    host = new ActorHost(nullptr);
  }
  return *host;
}

int ActorHost::end(const std::vector<caf::actor>& actors, Clock::Time::duration patience) {
  struct Living {
    std::mutex mutex;
    std::condition_variable fewer;
    std::size_t count = 0;
  };
  const auto living = std::make_shared<Living>();  // actors that are left behind end later
  living->count = static_cast<std::size_t>(
      std::ranges::count_if(actors, [](const caf::actor& actor) { return actor != nullptr; }));
  const auto clock = Clock::current();
  const Deadline deadline = clock->now() + patience;
  const auto wait_for_all = [&] {
    for (const caf::actor& actor : actors) {
      if (actor == nullptr) {
        continue;  // it was to be made anew, and that failed
      }
      actor->attach_functor([living] {
        const std::scoped_lock lock(living->mutex);
        --living->count;
        living->fewer.notify_all();
      });
      caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
    }
    std::unique_lock lock(living->mutex);
    clock->wait_until(living->fewer, lock, deadline, [&] { return living->count == 0; });
  };
  // The caller may be the destructor of a static object. Its thread has by then lost CAF's
  // thread-local objects, so wait on another thread.
  try {
    if (is_simulated_) {
      wait_for_all();
    } else {
      std::thread(wait_for_all).join();
    }
  } catch (const std::system_error&) {  // no thread can be started
    wait_for_all();
  }
  const std::scoped_lock lock(living->mutex);
  if (living->count > 0) {
    log(Level::Warning, "actors left behind", {{"count", living->count}});
  }
  return static_cast<int>(living->count);
}

void call_later(ActorHost& host, std::chrono::milliseconds delay, std::function<void()> work) {
  host.system().spawn(
      [delay, work = std::move(work)](caf::event_based_actor* self) -> caf::behavior {
        self->delayed_send(self, caf::timespan(delay), caf::tick_atom::value);
        return {[self, work](caf::tick_atom) {
          work();
          self->quit();
        }};
      });
}

}  // namespace stagecraft
