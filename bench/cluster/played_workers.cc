#include "stagecraft/bench/cluster/played_workers.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <future>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/bench/cluster/played_rank.h"

namespace stagecraft::bench {
namespace {

constexpr std::chrono::minutes kPlayedPatience{5};
/// The number of workers of one process that join at a time. While CAF waits for the other end of a
/// TLS handshake it polls without pause, and many of them would leave the driver no processor here.
constexpr int kAtOnce = 2;
constexpr const char* kDriverAddress = "127.0.0.1";

/// Returns an address in the form of a data port's. Nothing listens there.
PortAddress played_port(int worker) {
  return {.endpoint = fmt::format("tcp://10.0.{}.{}:40000", worker / 256, worker % 256),
          .key = fmt::format("{:040}", worker)};
}

WorkerHostActor::behavior_type worker_host(WorkerHostActor::pointer self,
                                           const AdmissionActor& admission,
                                           int worker) {
  self->monitor(admission);
  self->set_down_handler([](const caf::down_msg&) {});  // its process ends soon, too
  self->request(admission,
                caf::infinite,
                Join{.port = played_port(worker),
                     .process = getpid(),
                     .host = fmt::format("host-{}", worker / 8)})
      .then([](const Joined&) {}, [](const caf::error&) {});
  return {[](const OpenNetwork&) { return NetworkOpened{}; },
          [self](const StartRank& m) {
            return RankStarted{.worker = {self->spawn(played_plan_thread, m.rank),
                                          self->spawn(played_agent, m.rank)},
                               .error = {}};
          },
          [](const StartActors&) { return ActorsStarted{}; },
          [](const CloseNetwork&) {},
          [](const AreYouThere&) { return Here{}; }};
}

/// Joins like a worker process, once the port is known.
void join_at(ActorHost& host, std::uint16_t port, int worker) {
  try {
    const auto door = find_admission(host, kDriverAddress, port, kPlayedPatience);
    const auto welcome =
        ask<Welcome>(
            host, door, "the driver", kPlayedPatience, Hello{.fingerprint = build_fingerprint()})
            .get();
    if (welcome.refusal.empty()) {
      host.system().spawn(worker_host, door, worker);
    }
  } catch (const Error& error) {
    fmt::print(stderr, "worker {}: {}\n", worker, error.what());
  }
}

std::string read_line(int from) {
  std::string line;
  for (char c = 0; read(from, &c, 1) == 1 && c != '\n';) {
    line += c;
  }
  return line;
}

void write_line(int to, std::string line) {
  line += '\n';
  static_cast<void>(send(to, line.data(), line.size(), MSG_NOSIGNAL));
}

/// Runs a process that plays workers. It takes these orders: a folder of credentials, which it
/// answers when it is ready; a port; and the end.
[[noreturn]] void play(int orders, int first, int count) {
  const std::string credentials = read_line(orders);
  std::promise<std::uint16_t> told;
  const std::shared_future<std::uint16_t> port = told.get_future().share();
  std::barrier ready(count + 1);
  std::counting_semaphore turns(kAtOnce);
  std::vector<std::thread> workers;
  for (int worker = first; worker < first + count && !credentials.empty(); ++worker) {
    workers.emplace_back([&, worker] {
      ActorHost& host =
          open_control_plane(load_credentials(credentials + "/" + worker_name(worker)), {});
      ready.arrive_and_wait();
      const std::uint16_t door = port.get();
      turns.acquire();
      join_at(host, door, worker);
      turns.release();
    });
  }
  if (!workers.empty()) {
    ready.arrive_and_wait();
    write_line(orders, "ready");
  }
  if (const std::string line = read_line(orders); !line.empty()) {
    told.set_value(static_cast<std::uint16_t>(std::atoi(line.c_str())));
    static_cast<void>(read_line(orders));
  }
  _exit(0);
}

}  // namespace

PlayedWorkers::PlayedWorkers(int workers) {
  for (int first = 0; first < workers; first += kPlayedByOne) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::runtime_error("no socket for a process that plays workers");
    }
    const pid_t child = fork();
    if (child < 0) {
      throw std::runtime_error("no process to play workers");
    }
    if (child == 0) {
      for (const int other : orders_) {
        close(other);
      }
      close(ends[0]);
      play(ends[1], first, std::min(kPlayedByOne, workers - first));
    }
    close(ends[1]);
    processes_.push_back(child);
    orders_.push_back(ends[0]);
  }
}

PlayedWorkers::~PlayedWorkers() {
  for (const int order : orders_) {
    close(order);
  }
  for (const pid_t process : processes_) {
    waitpid(process, nullptr, 0);
  }
}

void PlayedWorkers::prepare(const std::string& credentials) const {
  for (const int order : orders_) {
    write_line(order, credentials);
  }
  for (const int order : orders_) {
    if (read_line(order) != "ready") {
      throw std::runtime_error("a process that plays workers has ended");
    }
  }
}

void PlayedWorkers::join(std::uint16_t port) const {
  for (const int order : orders_) {
    write_line(order, std::to_string(port));
  }
}

}  // namespace stagecraft::bench
