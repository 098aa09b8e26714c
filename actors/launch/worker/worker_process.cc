#include "stagecraft/actors/launch/worker/worker_process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/launch/network/find_listener.h"
#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/actors/launch/worker/end_now.h"
#include "stagecraft/actors/remote/host/rank_actors.h"
#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/base/process/standstill.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft {
namespace {

/// Pause between two requests of a worker that has no place.
constexpr std::chrono::milliseconds kAskAgain{200};

constexpr const char* kConnectionLost = "the connection to the driver is lost";

/// Holds what the actor and the main thread of a worker process share.
struct WorkerProcess {
  ActorHost& host;
  std::shared_ptr<DataPort> port;
  std::shared_ptr<const ActorTypes> types;
  std::shared_ptr<StepValues> values;
  Promise<std::string> ended;  ///< with the reason
};

struct HostState {
  static inline const char* name = "worker host";
  std::map<NetworkId, std::shared_ptr<RoutedNetwork>> networks;
  std::map<std::pair<NetworkId, Rank>, std::unique_ptr<RankActors>> actors;
};

using HostSelf = WorkerHostActor::stateful_pointer<HostState>;

/// The actor joins itself, so that the driver can send it orders.
WorkerHostActor::behavior_type worker_host(HostSelf self,
                                           const AdmissionActor& admission,
                                           const std::shared_ptr<WorkerProcess>& process,
                                           const std::shared_ptr<Promise<Joined>>& joined,
                                           const Join& join) {
  self->monitor(admission);
  self->set_down_handler(
      [process](const caf::down_msg&) { process->ended.set_value(kConnectionLost); });
  self->request(admission, caf::infinite, join)
      .then(
          [self, process, joined](Joined& answer) {
            if (answer.later) {
              self->quit();
            } else {
              self->attach_functor([process](const caf::error&) {
                process->ended.set_value("the driver continues with another worker in its place");
              });
            }
            joined->set_value(std::move(answer));
          },
          [joined](const caf::error&) {
            joined->set_error(Error(Errc::ClusterMember, "the driver has ended"));
          });
  return {
      [self, process](const OpenNetwork& m) {
        NetworkOpened opened;
        try {
          if (!m.capability.empty()) {  // before this process has a rank that could compute
            hold_this_process(m.capability);
          }
          std::shared_ptr<RoutedNetwork>& network = self->state.networks[m.network];
          if (network == nullptr) {
            network = std::make_shared<RoutedNetwork>(process->port, m.network, m.ranks);
          }
          for (const PeerPlace& peer : m.elsewhere) {
            network->place(peer.rank, peer.port);
          }
        } catch (const Error& error) {
          opened.error = to_chain(error);
        }
        return opened;
      },
      [self, process](const StartRank& m) {
        RankStarted started;
        try {
          const auto found = self->state.networks.find(m.network);
          SC_CHECK(found != self->state.networks.end(), "a rank's network is open when it starts");
          started.worker = launch_thread(process->host,
                                         m.rank,
                                         found->second->endpoint(m.rank),
                                         process->values,
                                         received_setup);
        } catch (const Error& error) {
          started.error = to_chain(error);
        }
        return started;
      },
      [self, process](const StartActors& m) {
        ActorsStarted started;
        try {
          const auto found = self->state.networks.find(m.network);
          SC_CHECK(found != self->state.networks.end(), "a rank's network is open when it starts");
          self->state.actors[{m.network, m.rank}] = std::make_unique<RankActors>(
              found->second->endpoint(m.rank), m.generation, process->types, process->values);
        } catch (const Error& error) {
          started.error = to_chain(error);
        }
        return started;
      },
      [self](const CloseNetwork& m) {
        const process_end::AtWork at_work;  // drops tensors that no rank asked for
        std::erase_if(self->state.actors, [&](auto& one) { return one.first.first == m.network; });
        self->state.networks.erase(m.network);
      },
      [](const AreYouThere&) { return Here{}; }};
}

/// Reads until the other end is closed: no process holds it then.
void wait_for_end(int lifeline) {
  char nothing = 0;
  while (true) {
    const auto got = read(lifeline, &nothing, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return;
    }
  }
}

/// Removes a worker's credentials at the end of its work, however it ends. The thread of watch()
/// keeps them too, so that their own destructor may not run.
struct RemovedAtEnd {
  std::shared_ptr<const TemporaryCredentials> credentials;

  explicit RemovedAtEnd(std::shared_ptr<const TemporaryCredentials> c)
      : credentials(std::move(c)) {}
  ~RemovedAtEnd() {
    if (credentials) {
      credentials->remove();
    }
  }
  RemovedAtEnd(const RemovedAtEnd&) = delete;
  RemovedAtEnd& operator=(const RemovedAtEnd&) = delete;
};

/// Ends this process with the lifeline: its work could serve no one after that.
void watch(int lifeline, const std::shared_ptr<const TemporaryCredentials>& handed_over) {
  std::thread([lifeline, handed_over] {
    wait_for_end(lifeline);
    end_now(handed_over, 0);
  }).detach();
}

/// Returns how the port ends this process after the loss of a tensor, or without the port itself
/// (keeps WP-2).
DataPortOptions ending(const std::shared_ptr<const TemporaryCredentials>& handed_over) {
  return {.when_broken =
              [handed_over](const std::string& key, const Error& why) {
                log(Level::Error, "worker ends", {{"key", key}, {"why", why.what()}});
                end_now(handed_over, 1);
              },
          .when_failed =
              [handed_over](const Error& why) {
                log(Level::Error, "worker ends", {{"why", why.what()}});
                end_now(handed_over, 1);
              }};
}

/// Reports a cut way to the driver (keeps WP-3).
void tell_cut(ActorHost& host,
              const AdmissionActor& admission,
              const std::string& key,
              const Error& why) {
  log(Level::Info, "peer out of reach", {{"key", key}, {"why", why.what()}});
  // An actor sends it, so that the driver knows which process reports it.
  host.system().spawn([admission, cut = PeerCut{key, to_chain(why)}](caf::event_based_actor* self) {
    self->send(admission, cut);
  });
}

/// Errors: ClusterMember if the driver has another build.
void greet(ActorHost& host, const AdmissionActor& admission, std::chrono::milliseconds patience) {
  const Hello hello{.fingerprint = build_fingerprint()};
  Welcome welcome = ask<Welcome>(host, admission, "the driver", patience, hello).get();
  if (welcome.refusal.empty()) {  // the driver may compare less than this worker does
    welcome.refusal = refusal_of(hello, welcome);
  }
  if (!welcome.refusal.empty()) {
    throw Error(Errc::ClusterMember,
                "the driver does not admit this worker: " + refusal_text(hello, welcome));
  }
}

std::chrono::milliseconds left(Deadline deadline) {
  return std::max(std::chrono::milliseconds(0),
                  std::chrono::duration_cast<std::chrono::milliseconds>(
                      deadline - std::chrono::steady_clock::now()));
}

/// Asks for a place until there is one. Errors: ClusterTimeout; those of the driver.
void join_cluster(const AdmissionActor& admission,
                  const std::shared_ptr<WorkerProcess>& process,
                  const WorkerProcessOptions& options,
                  Deadline deadline) {
  const Join join{.place = options.place,
                  .incarnation = options.incarnation,
                  .port = process->port->address(),
                  .process = getpid(),
                  .host = host_name(),
                  .processor = processor_of_this_process()};
  while (true) {
    const auto joined = std::make_shared<Promise<Joined>>();
    const auto answer = joined->future();
    process->host.system().spawn(worker_host, admission, process, joined, join);
    const bool has_answered = answer.wait_until(deadline);
    if (has_answered && !answer.get().later) {
      if (const Joined last = answer.get(); !last.error.empty()) {
        throw to_error(last.error);
      }
      return;
    }
    if (!has_answered || std::chrono::steady_clock::now() + kAskAgain > deadline) {
      throw Error(
          Errc::ClusterTimeout,
          fmt::format("the driver at {} has not admitted this worker within {} ms{}",
                      host_and_port(options.host, options.port),
                      options.patience.count(),
                      has_answered ? ": it has the worker of this certificate, or needs none with "
                                     "its number; start this one when another is lost, or give the "
                                     "driver more ranks"
                                   : ""));
    }
    std::this_thread::sleep_for(kAskAgain);
  }
}

}  // namespace

std::string run_worker_process(const WorkerProcessOptions& options,
                               std::shared_ptr<const ActorTypes> types) {
  connect_nccl_early();  // before there are threads
  std::shared_ptr<const TemporaryCredentials> handed_over;
  if (options.credentials == kCredentialsFromLifeline) {
    handed_over = TemporaryCredentials::received(options.lifeline);
  }
  const RemovedAtEnd removed(handed_over);
  if (options.lifeline >= 0) {
    watch(options.lifeline, handed_over);
  }
  const Credentials credentials =
      load_worker_credentials(handed_over ? handed_over->dir() : options.credentials);
  const std::string told = options.bind.empty() ? "" : address_of_interface(options.bind);
  const Deadline deadline = std::chrono::steady_clock::now() + options.patience;
  const std::string driver = find_listener(options.host, options.port, options.patience);
  const std::string bind = told.empty() ? address_towards(driver) : told;
  ActorHost& host = open_control_plane(credentials, options.heartbeat);
  const AdmissionActor admission = find_admission(host, driver, options.port, left(deadline));
  greet(host, admission, left(deadline));
  DataPortOptions port = ending(handed_over);
  port.bind = any_port_of(bind);
  port.shared_memory = MemoryFile::usual_limit();
  port.silence = options.heartbeat.silence;
  port.when_cut = [&host, admission](const std::string& key, const Error& why) {
    tell_cut(host, admission, key, why);
  };
  const auto process =
      std::make_shared<WorkerProcess>(WorkerProcess{.host = host,
                                                    .port = DataPort::open(port),
                                                    .types = std::move(types),
                                                    .values = std::make_shared<StepValues>(),
                                                    .ended = {}});
  join_cluster(admission, process, options, deadline);
  const auto standstills = watch_standstills();  // logs standstills of this process
  const std::string why = process->ended.future().get();
  if (why == kConnectionLost && options.lifeline >= 0) {
    log(Level::Info, "worker ends", {{"why", why}});
    end_now(handed_over, kDriverLost);
  }
  return why;
}

}  // namespace stagecraft
