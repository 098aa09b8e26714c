#include "stagecraft/actors/launch/worker/worker_host.h"

#include <map>
#include <utility>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/remote/host/rank_actors.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/base/time_left.h"
#include "stagecraft/futures/routing/routed.h"

namespace stagecraft {
namespace {

/// Pause between two requests of a worker that has no place.
constexpr std::chrono::milliseconds kAskAgain{200};

struct HostState {
  static inline const char* name = "worker host";
  std::map<NetworkId, std::shared_ptr<RoutedNetwork>> networks;
  std::map<std::pair<NetworkId, Rank>, std::unique_ptr<RankActors>> actors;
};

using HostSelf = WorkerHostActor::stateful_pointer<HostState>;

std::shared_ptr<Transport> endpoint_of(const HostState& state, NetworkId network, Rank rank) {
  const auto found = state.networks.find(network);
  SC_CHECK(found != state.networks.end(), "a rank's network is open when it starts");
  return found->second->endpoint(rank);
}

/// Newcomer is a worker process that has no place yet.
struct Newcomer {
  std::shared_ptr<ServedProcess> process;
  AdmissionActor admission;
  Join join;
  Deadline deadline;
  std::string late;
  Promise<std::monostate> joined;

  [[nodiscard]] std::chrono::milliseconds left() const { return time_left(deadline); }
  /// `has_answered`: that there is no place.
  void fail_in_time(bool has_answered) {
    (void)joined.set_error(
        Error(Errc::ClusterTimeout,
              late + (has_answered
                          ? ": it has the worker of this certificate, or needs none with its "
                            "number; start this one when another is lost, or give the driver more "
                            "ranks"
                          : "")));
  }
};

void ask_for_place(const std::shared_ptr<Newcomer>& newcomer);

void hear(HostSelf self, const std::shared_ptr<Newcomer>& newcomer, const Joined& answer) {
  if (answer.taken) {
    newcomer->process->taken();
  }
  if (!answer.error.empty()) {
    self->quit();
    (void)newcomer->joined.set_error(to_error(answer.error));
  } else if (!answer.later) {
    self->attach_functor(
        [process = newcomer->process](const caf::error&) { process->ended.set_value(kReplaced); });
    (void)newcomer->joined.set_value({});
  } else {
    self->quit();
    if (newcomer->left() < kAskAgain) {
      newcomer->fail_in_time(/*has_answered=*/true);
    } else {
      call_later(newcomer->process->host, kAskAgain, [newcomer] { ask_for_place(newcomer); });
    }
  }
}

/// The actor joins itself, so that the driver can send it orders.
WorkerHostActor::behavior_type worker_host(HostSelf self,
                                           const std::shared_ptr<Newcomer>& newcomer) {
  const std::shared_ptr<ServedProcess> process = newcomer->process;
  self->monitor(newcomer->admission);
  self->set_down_handler([self, process, newcomer](const caf::down_msg&) {
    process->ended.set_value(kConnectionLost);
    (void)newcomer->joined.set_error(Error(Errc::ClusterMember, "the driver has ended"));
    self->quit();  // closes the networks
  });
  self->request(newcomer->admission, caf::timespan(newcomer->left()), newcomer->join)
      .then(
          [self, newcomer](const Joined& answer) { hear(self, newcomer, answer); },
          [self, newcomer](const caf::error& why) {
            self->quit();
            if (why == caf::sec::request_timeout) {
              newcomer->fail_in_time(/*has_answered=*/false);
            } else {
              (void)newcomer->joined.set_error(Error(Errc::ClusterMember, "the driver has ended"));
            }
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
          started.worker = process->start_rank(m.rank, endpoint_of(self->state, m.network, m.rank));
        } catch (const Error& error) {
          started.error = to_chain(error);
        }
        return started;
      },
      [self, process](const StartActors& m) {
        ActorsStarted started;
        try {
          self->state.actors[{m.network, m.rank}] =
              std::make_unique<RankActors>(endpoint_of(self->state, m.network, m.rank),
                                           m.generation,
                                           process->types,
                                           process->values);
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

void ask_for_place(const std::shared_ptr<Newcomer>& newcomer) {
  newcomer->process->host.system().spawn(worker_host, newcomer);
}

/// Says which build this is, and asks for a place if the driver has the same (HE-1).
void greet(const std::shared_ptr<Newcomer>& newcomer) {
  const Hello hello{.fingerprint = build_fingerprint()};
  const Future<Welcome> answer = ask<Welcome>(
      newcomer->process->host, newcomer->admission, "the driver", newcomer->left(), hello);
  answer.on_ready([newcomer, answer, hello] {
    try {
      Welcome welcome = answer.get();
      if (welcome.refusal.empty()) {  // the driver may compare less than this worker does
        welcome.refusal = refusal_of(hello, welcome);
      }
      if (!welcome.refusal.empty()) {
        throw Error(Errc::ClusterMember,
                    "the driver does not admit this worker: " + refusal_text(hello, welcome));
      }
      ask_for_place(newcomer);
    } catch (const Error& error) {
      (void)newcomer->joined.set_error(error);
    }
  });
}

}  // namespace

Future<std::monostate> join_cluster(const std::shared_ptr<ServedProcess>& process,
                                    const AdmissionActor& admission,
                                    Join join,
                                    Deadline deadline,
                                    std::string late) {
  const auto newcomer = std::make_shared<Newcomer>(Newcomer{.process = process,
                                                            .admission = admission,
                                                            .join = std::move(join),
                                                            .deadline = deadline,
                                                            .late = std::move(late),
                                                            .joined = {}});
  Future<std::monostate> joined = newcomer->joined.future();
  greet(newcomer);
  return joined;
}

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

}  // namespace stagecraft
