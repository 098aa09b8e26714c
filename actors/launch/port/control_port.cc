#include "stagecraft/actors/launch/port/control_port.h"

#include <algorithm>
#include <random>
#include <thread>

#include <caf/io/basp_broker.hpp>
#include <caf/io/middleman.hpp>
#include <caf/openssl/remote_actor.hpp>
#include <fmt/format.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/port/file_limit.h"
#include "stagecraft/actors/launch/port/tls_door.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

/// Pause between two attempts to find a driver that is not there yet.
constexpr std::chrono::milliseconds kRetry{100};
/// Most heartbeats to wait before asking a driver again that had no time for this worker.
constexpr int kLongestPause = 8;

/// Returns the pause before the next attempt. CAF gives up a connection at the first heartbeat that
/// finds its handshake unfinished. A driver may be too busy for a handshake when many workers come
/// at once, so they come again at different times, ever later, and each right after a heartbeat.
class Pauses {
 public:
  explicit Pauses(caf::actor_system& system)
      : heartbeat_(caf::get_or(system.config(), "middleman.heartbeat-interval", caf::timespan(0))) {
  }

  [[nodiscard]] static bool may_pass(const caf::error& why) {
    return why == caf::sec::cannot_connect_to_node || why == caf::sec::connection_timeout;
  }
  [[nodiscard]] caf::timespan next(const caf::error& why) {
    if (why == caf::sec::cannot_connect_to_node) {
      return kRetry;
    }
    longest_ = std::min(2 * longest_, kLongestPause);
    return heartbeat_ * std::uniform_int_distribution(0, longest_)(random_);
  }

 private:
  const caf::timespan heartbeat_;
  int longest_ = 1;
  std::minstd_rand random_{std::random_device{}()};
};

[[noreturn]] void throw_not_found(const std::string& where,
                                  const caf::error& why,
                                  ActorHost& host) {
  if (why == caf::sec::unexpected_actor_messaging_interface) {
    throw Error(
        Errc::ClusterMember,
        fmt::format("the program that answers at {} is no driver of this version of Stagecraft: "
                    "install the same version everywhere",
                    where));
  }
  log(Level::Debug, "no driver found", {{"at", where}, {"why", host.system().render(why)}});
  const bool is_slow = why == caf::sec::connection_timeout;
  throw Error(
      Errc::ClusterMember,
      fmt::format("the program that answers at {} {}: check that it is the driver and has the "
                  "driver's certificate, that this process has a worker's, and that both are of "
                  "the same cluster and have not expired (stagecraft credentials show){}",
                  where,
                  is_slow ? "does not finish the greeting in time" : "ends the connection",
                  is_slow ? "; a driver with much to do needs more time (worker --patience, launch "
                            "--join-seconds)"
                          : ""));
}

}  // namespace

void check_heartbeat(const Heartbeat& heartbeat) {
  if (heartbeat.interval.count() < 1 || heartbeat.silence < 2 * heartbeat.interval) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected a heartbeat of at least 1 ms and a silence of at least two "
                            "heartbeats, found {} ms and {} ms",
                            heartbeat.interval.count(),
                            heartbeat.silence.count()));
  }
}

ActorHost& open_control_plane(const Credentials& credentials, const Heartbeat& heartbeat) {
  check_heartbeat(heartbeat);
  raise_file_limit();
  return ActorHost::with_link({.certificate = credentials.certificate,
                               .key = credentials.key,
                               .authority = credentials.authority,
                               .interval = heartbeat.interval,
                               .silence = heartbeat.silence});
}

std::uint16_t publish(ActorHost& host,
                      const AdmissionActor& actor,
                      const std::shared_ptr<PeerNodes>& nodes,
                      const std::string& address,
                      std::uint16_t port) {
  caf::actor_system& system = host.system();
  const auto door = open_tls_door(system, address, port, nodes);
  if (!door) {
    const bool is_taken = door.error() == caf::sec::cannot_open_port;
    throw Error(Errc::ClusterMember,
                fmt::format("cannot listen for workers at {} ({}): name an address of this host "
                            "and a free port (STAGECRAFT_INTERFACE, STAGECRAFT_PORT; in a program: "
                            "SpawnOptions)",
                            host_and_port(address, port),
                            is_taken ? "the address is not of this host, or the port is taken"
                                     : system.render(door.error())));
  }
  const std::uint16_t opened = (*door)->port();
  // As caf::openssl::publish does it, but with our own door.
  caf::anon_send(system.middleman().named_broker<caf::io::basp_broker>(caf::atom("BASP")),
                 caf::publish_atom::value,
                 *door,
                 opened,
                 caf::actor_cast<caf::strong_actor_ptr>(actor),
                 system.message_types(actor));
  return opened;
}

void unpublish(ActorHost& host, const AdmissionActor& actor, std::uint16_t port) {
  const auto closed = host.system().middleman().unpublish(actor, port);
  if (!closed) {
    log(Level::Warning, "port stays open", {{"port", port}});
  }
}

AdmissionActor find_admission(ActorHost& host,
                              const std::string& address,
                              std::uint16_t port,
                              std::chrono::milliseconds patience) {
  const Deadline deadline = std::chrono::steady_clock::now() + patience;
  const std::string where = host_and_port(address, port);
  using Found = caf::expected<AdmissionActor>;
  // remote_actor waits without a limit, so it runs on a thread that may be left behind.
  const auto promise = std::make_shared<Promise<std::shared_ptr<Found>>>();
  const auto found = promise->future();
  std::thread([&system = host.system(), promise, address, port, deadline] {
    Found answer = caf::openssl::remote_actor<AdmissionActor>(system, address, port);
    Pauses pauses(system);
    while (!answer && Pauses::may_pass(answer.error())) {
      const caf::timespan pause = pauses.next(answer.error());
      if (std::chrono::steady_clock::now() + pause >= deadline) {
        break;
      }
      std::this_thread::sleep_for(pause);
      answer = caf::openssl::remote_actor<AdmissionActor>(system, address, port);
    }
    promise->set_value(std::make_shared<Found>(std::move(answer)));
  }).detach();
  const auto answer = found.wait_until(deadline) ? found.get() : nullptr;
  if (!answer || (!*answer && answer->error() == caf::sec::cannot_connect_to_node)) {
    throw Error(Errc::ClusterTimeout,
                fmt::format("nobody has answered at {} within {} ms", where, patience.count()));
  }
  if (!*answer) {
    throw_not_found(where, answer->error(), host);
  }
  return **answer;
}

}  // namespace stagecraft
