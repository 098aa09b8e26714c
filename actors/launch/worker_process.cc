#include "stagecraft/actors/launch/worker_process.h"

#include <unistd.h>

#include <cerrno>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process_end.h"

namespace stagecraft {
namespace {

/// What the actor and the main thread of a worker process share.
struct WorkerProcess {
  ActorHost& host;
  std::shared_ptr<DataPort> port;
  Promise<Joined> joined;
  Promise<std::string> ended;  ///< why
};

struct HostState {
  static inline const char* name = "worker host";
  std::map<NetworkId, std::shared_ptr<RoutedNetwork>> networks;
};

using HostSelf = WorkerHostActor::stateful_pointer<HostState>;

/// Joins by itself, so that the driver knows whom to tell what to do.
WorkerHostActor::behavior_type worker_host(HostSelf self,
                                           const AdmissionActor& admission,
                                           const std::shared_ptr<WorkerProcess>& process,
                                           const Join& join) {
  self->monitor(admission);
  self->set_down_handler([process](const caf::down_msg&) {
    process->ended.set_value("the connection to the driver is lost");
  });
  self->request(admission, caf::infinite, join)
      .then([process](Joined& joined) { process->joined.set_value(std::move(joined)); },
            [process](const caf::error&) {
              process->joined.set_error(Error(Errc::ClusterMember, "the driver has ended"));
            });
  return {
      [self, process](const OpenNetwork& m) {
        NetworkOpened opened;
        try {
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
          started.worker =
              launch_thread(process->host, m.rank, found->second->endpoint(m.rank), received_setup);
        } catch (const Error& error) {
          started.error = to_chain(error);
        }
        return started;
      },
      [self](const CloseNetwork& m) {
        const process_end::AtWork at_work;  // tensors that nobody asked for are dropped
        self->state.networks.erase(m.network);
      }};
}

/// Reads until the other end is closed, which is when nobody has it any more.
void wait_for_end(int lifeline) {
  char nothing = 0;
  while (true) {
    const auto got = read(lifeline, &nothing, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) {
      return;
    }
  }
}

/// Nobody is left whom anything done here could serve.
[[noreturn]] void end_with_driver() {
  ::_exit(0);
}

/// Keeps WP-2.
void end_without_tensor(const std::string& key, const Error& why) {
  log(Level::Error, "worker ends", {{"key", key}, {"why", why.what()}});
  ::_exit(1);
}

/// Errors: ClusterMember when the driver is another build.
void greet(ActorHost& host, const AdmissionActor& admission, std::chrono::milliseconds patience) {
  const Hello hello{.fingerprint = build_fingerprint()};
  Welcome welcome = ask<Welcome>(host, admission, "the driver", patience, hello).get();
  if (welcome.refusal.empty()) {  // a driver that compares less than this worker does
    welcome.refusal = refusal_of(hello, welcome);
  }
  if (!welcome.refusal.empty()) {
    throw Error(Errc::ClusterMember,
                "the driver does not take this worker in: " + refusal_text(hello, welcome));
  }
}

}  // namespace

std::string run_worker_process(const WorkerProcessOptions& options) {
  if (options.lifeline >= 0) {
    std::thread([lifeline = options.lifeline] {
      wait_for_end(lifeline);
      end_with_driver();
    }).detach();
  }
  const Credentials credentials = load_credentials(options.credentials);
  const auto process = std::make_shared<WorkerProcess>(
      WorkerProcess{.host = open_control_plane(credentials, options.heartbeat),
                    .port = DataPort::open({.bind = "tcp://" + options.bind + ":*",
                                            .when_broken = end_without_tensor}),
                    .ended = {}});
  const AdmissionActor admission =
      find_admission(process->host, options.host, options.port, options.patience);
  greet(process->host, admission, options.patience);
  const Join join{
      .place = options.place, .incarnation = options.incarnation, .port = process->port->address()};
  process->host.system().spawn(worker_host, admission, process, join);
  const auto joined = process->joined.future();
  if (!joined.wait_until(std::chrono::steady_clock::now() + options.patience)) {
    throw Error(Errc::ClusterTimeout,
                fmt::format("the driver has not taken this worker in within {} ms",
                            options.patience.count()));
  }
  if (const Joined answer = joined.get(); !answer.error.empty()) {
    throw to_error(answer.error);
  }
  return process->ended.future().get();
}

}  // namespace stagecraft
