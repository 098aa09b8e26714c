#include "stagecraft/bench/cluster/echo_peers.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/launch/ways/child_process.h"
#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/temporary_credentials.h"

namespace stagecraft::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kEchoWord = "--echo-peer";
constexpr const char* kLoopback = "127.0.0.1";
constexpr std::chrono::seconds kPatience{60};

/// Desk holds the peers that have joined.
struct Desk {
  std::mutex mutex;
  std::vector<caf::actor> peers;
  std::promise<void> complete;
};

AdmissionActor::behavior_type admission(AdmissionActor::pointer self,
                                        const std::shared_ptr<Desk>& desk,
                                        std::size_t count) {
  return {[](const Hello&) { return Welcome{.fingerprint = build_fingerprint(), .refusal = {}}; },
          [self, desk, count](const Join&) {
            const std::scoped_lock lock(desk->mutex);
            desk->peers.push_back(caf::actor_cast<caf::actor>(self->current_sender()));
            if (desk->peers.size() == count) {
              desk->complete.set_value();
            }
            return Joined{};
          },
          [](const PeerCut&) {}};
}

caf::behavior echo(caf::event_based_actor* self, const AdmissionActor& door, Rank rank) {
  self->request(door, caf::infinite, Join{.place = rank.value, .port = {}})
      .then([](const Joined&) {}, [](const caf::error&) {});
  return {[rank](const StepOrder& m) {
            return StepReport{.rank = rank, .submission = m.submission, .committed = true};
          },
          [rank](const Status&) { return StatusReply{.rank = rank, .waiting_for = {}}; }};
}

struct Round {
  int left = 0;
  std::size_t missing = 0;
  std::promise<void> done;
};

void send_orders(caf::event_based_actor* self, const std::vector<caf::actor>& peers, Round& round) {
  if (round.left-- == 0) {
    round.done.set_value();
    self->quit();
    return;
  }
  round.missing = peers.size();
  for (const caf::actor& peer : peers) {
    self->send(peer, StepOrder{});
  }
}

caf::behavior order_rounds(caf::event_based_actor* self,
                           const std::vector<caf::actor>& peers,
                           const std::shared_ptr<Round>& round) {
  for (const caf::actor& peer : peers) {
    self->monitor(peer);
  }
  self->set_down_handler([self, round](const caf::down_msg&) {
    round->done.set_exception(std::make_exception_ptr(std::runtime_error("an echo peer ended")));
    self->quit();
  });
  send_orders(self, peers, *round);
  return {[self, peers, round](const StepReport&) {
    if (--round->missing == 0) {
      send_orders(self, peers, *round);
    }
  }};
}

double microseconds_of(Clock::time_point begun, int times) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begun).count() / times;
}

}  // namespace

struct EchoPeers::Impl {
  explicit Impl(int count)
      : credentials(count),
        host(open_control_plane(load_credentials(credentials.dir() + "/driver"), {})),
        door(host.system().spawn(admission, desk, static_cast<std::size_t>(count))) {
    const std::uint16_t port = publish(host, door, std::make_shared<PeerNodes>(), kLoopback);
    for (int i = 0; i < count; ++i) {
      std::vector<std::string> arguments =
          worker_arguments({.host = kLoopback,
                            .port = port,
                            .credentials = credentials.dir() + "/" + worker_name(i),
                            .place = i,
                            .lifeline = kLifeline,
                            .bind = kLoopback,
                            .heartbeat = {},
                            .patience = kPatience});
      arguments.insert(arguments.begin(), {"control_plane", kEchoWord});
      children.push_back(std::make_unique<ChildProcess>(
          ChildProgram{
              .path = "/proc/self/exe", .arguments = arguments, .input = {}, .on_line = {}},
          [](const std::string&) {}));
    }
    if (desk->complete.get_future().wait_for(kPatience) != std::future_status::ready) {
      throw std::runtime_error(fmt::format("expected {} echo peers, found fewer", count));
    }
    unpublish(host, door, port);
  }

  const TemporaryCredentials credentials;
  ActorHost& host;
  const std::shared_ptr<Desk> desk = std::make_shared<Desk>();
  const AdmissionActor door;
  std::vector<std::unique_ptr<ChildProcess>> children;
};

EchoPeers::EchoPeers(int count) : impl_(std::make_unique<Impl>(count)) {}

EchoPeers::~EchoPeers() = default;

double EchoPeers::round_of_orders(int rounds) {
  const auto round = std::make_shared<Round>();
  round->left = rounds;
  auto done = round->done.get_future();
  const auto begun = Clock::now();
  impl_->host.system().spawn(order_rounds, impl_->desk->peers, round);
  done.get();
  return microseconds_of(begun, rounds);
}

double EchoPeers::call(int calls) {
  const caf::scoped_actor self(impl_->host.system());
  const auto begun = Clock::now();
  for (int i = 0; i < calls; ++i) {
    self->request(impl_->desk->peers.front(), caf::timespan(kPatience), Status{})
        .receive([](const StatusReply&) {},
                 [](const caf::error&) { throw std::runtime_error("an echo peer ended"); });
  }
  return microseconds_of(begun, calls);
}

std::vector<pid_t> EchoPeers::processes() const {
  std::vector<pid_t> processes;
  for (const auto& child : impl_->children) {
    processes.push_back(child->id());
  }
  return processes;
}

void serve_if_echo_peer(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != kEchoWord) {
    return;
  }
  const WorkerProcessOptions options =
      parse_worker_arguments(std::vector<std::string>(argv + 2, argv + argc));
  ActorHost& host = open_control_plane(load_credentials(options.credentials), options.heartbeat);
  const AdmissionActor door = find_admission(host, options.host, options.port, options.patience);
  host.system().spawn(echo, door, Rank(options.place));
  char nothing = 0;
  while (read(options.lifeline, &nothing, 1) < 0 && errno == EINTR) {
  }
  ::_exit(0);
}

}  // namespace stagecraft::bench
