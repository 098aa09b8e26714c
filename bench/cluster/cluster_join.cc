/// How long does a cluster of many worker processes take to form, and what does that cost its
/// driver?
///
/// The driver's side is the real one: its fleet, its port with mutual TLS, its heartbeats. Workers
/// are played (played_workers.h). All share this machine's processors, so the seconds say little
/// about workers with their own processors. The driver's own processor time is therefore printed
/// too.
///
///   cluster_join [WORKERS]...      64, 256 and 1024 by default
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <linux/tcp.h>
#include <netinet/in.h>

#include "stagecraft/actors/launch/fleet/fleet.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/median.h"
#include "stagecraft/bench/cluster/played_workers.h"
#include "stagecraft/bench/hardware.h"

namespace stagecraft::bench::cluster_join {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 3;
constexpr int kOrders = 21;
constexpr std::chrono::minutes kPatience{5};

/// Figures of one cluster, as the driver's process sees it.
struct Figures {
  double credentials_s = 0;  ///< to make them for all places
  double join_s = 0;         ///< from then until all have joined
  double join_cpu_s = 0;     ///< of the driver, for joining
  double network_s = 0;      ///< until every worker has the addresses of all
  double order_ms = 0;       ///< orders and reports of a step: the median
  double order_cpu_ms = 0;
  double connections = 0, descriptors = 0, threads = 0;
  double sent = 0, received = 0;  ///< bytes, of all connections, until all have joined
  double network_sent = 0;        ///< bytes of the addresses
  double memory_mib = 0;          ///< increase since before the workers came
};

double seconds_since(Clock::time_point begun) {
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

/// Returns the processor seconds that this process has used.
double processors() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Returns a number from /proc/self/status.
double status_of_process(std::string_view name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name)) {
      return std::stod(line.substr(name.size() + 1));
    }
  }
  throw std::runtime_error("/proc/self/status does not say what was asked");
}

struct Connections {
  int open = 0, descriptors = 0;
  double sent = 0, received = 0;
};

Connections connections_of_process() {
  Connections all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++all.descriptors;
    struct tcp_info info {};
    socklen_t size = sizeof info;
    if (getsockopt(std::stoi(entry.path().filename()), IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
        info.tcpi_state == 1 /* established */) {
      ++all.open;
      all.sent += static_cast<double>(info.tcpi_bytes_acked);
      all.received += static_cast<double>(info.tcpi_bytes_received);
    }
  }
  return all;
}

/// Opens the network as a crew's binding does.
void open_network(Fleet& fleet, int workers) {
  OpenNetwork order{.network = fleet.next_network(), .ranks = workers, .elsewhere = {}};
  std::vector<FleetMember> members;
  for (int place = 0; place < workers; ++place) {
    members.push_back(fleet.member(place));
    order.elsewhere.push_back({Rank(place), members.back().port});
  }
  std::vector<Future<NetworkOpened>> asked;
  for (const FleetMember& member : members) {
    asked.push_back(ask<NetworkOpened>(
        fleet.host(), member.host, fleet.name_of(member.place), kPatience, order));
  }
  for (const auto& answer : asked) {
    static_cast<void>(answer.get());
  }
}

std::vector<PlanActor> start_ranks(Fleet& fleet, int workers) {
  std::vector<PlanActor> ranks;
  for (int place = 0; place < workers; ++place) {
    ranks.push_back(ask<RankStarted>(fleet.host(),
                                     fleet.member(place).host,
                                     fleet.name_of(place),
                                     kPatience,
                                     StartRank{.rank = Rank(place)})
                        .get()
                        .worker.plan_thread);
  }
  return ranks;
}

/// Returns the seconds from the first order to the last report.
double round_of_orders(Fleet& fleet, const std::vector<PlanActor>& ranks) {
  const auto done = std::make_shared<std::promise<void>>();
  const auto begun = Clock::now();
  fleet.host().system().spawn([ranks, done](caf::event_based_actor* self) {
    const auto missing = std::make_shared<std::size_t>(ranks.size());
    for (const PlanActor& rank : ranks) {
      self->request(rank, caf::infinite, StepOrder{}).then([missing, done](const StepReport&) {
        if (--*missing == 0) {
          done->set_value();
        }
      });
    }
  });
  done->get_future().wait();
  return seconds_since(begun);
}

void measure_orders(Fleet& fleet, int workers, Figures& figures) {
  const std::vector<PlanActor> ranks = start_ranks(fleet, workers);
  std::vector<double> rounds;
  double cpu = 0;
  for (int round = -1; round < kOrders; ++round) {  // the first round warms up
    const double before = processors();
    const double seconds = round_of_orders(fleet, ranks);
    if (round >= 0) {
      rounds.push_back(seconds);
      cpu += processors() - before;
    }
  }
  figures.order_ms = median(rounds) * 1e3;
  figures.order_cpu_ms = cpu / kOrders * 1e3;
}

/// Waits for "10.0.0.1:4711" in the meeting place and returns the port.
std::uint16_t port_in(const std::string& folder) {
  std::string address;
  while (!(std::ifstream(folder + "/address") >> address)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

Figures measure(int workers) {
  const PlayedWorkers played(workers);
  char folder[] = "/tmp/cluster-join-XXXXXX";
  if (mkdtemp(folder) == nullptr) {
    throw std::runtime_error("no folder can be made in /tmp");
  }
  Figures figures;
  const std::string credentials = std::string(folder) + "/cluster";
  const auto begun = Clock::now();
  make_credentials(credentials, {.members = workers, .durable = false});
  figures.credentials_s = seconds_since(begun);
  const auto fleet = std::make_shared<Fleet>(SpawnOptions{.credentials = credentials,
                                                          .workers_come = true,
                                                          .meeting_place = folder,
                                                          .join_deadline = kPatience});
  played.prepare(credentials);
  const double memory = status_of_process("VmRSS:");
  const auto joined = std::async(std::launch::async, [&] { fleet->require(workers); });
  const std::uint16_t port = port_in(folder);
  const double cpu = processors();
  const auto opened = Clock::now();
  played.join(port);
  joined.wait();
  figures.join_s = seconds_since(opened);
  figures.join_cpu_s = processors() - cpu;
  figures.memory_mib = (status_of_process("VmRSS:") - memory) / 1024;
  figures.threads = status_of_process("Threads:");
  const Connections after = connections_of_process();
  figures.connections = after.open;
  figures.descriptors = after.descriptors - played.processes();
  figures.sent = after.sent;
  figures.received = after.received;
  const auto told = Clock::now();
  open_network(*fleet, workers);
  figures.network_s = seconds_since(told);
  figures.network_sent = connections_of_process().sent - after.sent;
  measure_orders(*fleet, workers, figures);
  std::filesystem::remove_all(folder);
  return figures;
}

/// Measures in a process of its own, so that one cluster's remains do not count for the next.
Figures measured_apart(int workers) {
  int ends[2];
  Figures figures;
  if (pipe(ends) != 0) {
    throw std::runtime_error("no pipe can be made");
  }
  const pid_t child = fork();
  if (child == 0) {
    figures = measure(workers);
    _exit(write(ends[1], &figures, sizeof figures) == sizeof figures ? 0 : 1);
  }
  close(ends[1]);
  const bool has_answered = read(ends[0], &figures, sizeof figures) == sizeof figures;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  if (!has_answered) {
    throw std::runtime_error("a measurement has failed");
  }
  return figures;
}

void print(int workers, const std::vector<Figures>& rounds) {
  const auto of = [&](double Figures::*what) {
    std::vector<double> samples;
    for (const Figures& round : rounds) {
      samples.push_back(round.*what);
    }
    return median(samples);
  };
  fmt::print(
      "{:>5} workers: joined in {:.2f} s ({:.2f} ms of the driver's processors each), "
      "after {:.2f} s for credentials\n",
      workers,
      of(&Figures::join_s),
      of(&Figures::join_cpu_s) / workers * 1e3,
      of(&Figures::credentials_s));
  fmt::print(
      "       driver: {:.0f} connections, {:.0f} open files, {:.0f} threads, {:.1f} MiB more; "
      "for each worker {} sent and {} received\n",
      of(&Figures::connections),
      of(&Figures::descriptors),
      of(&Figures::threads),
      of(&Figures::memory_mib),
      bytes_text(of(&Figures::sent) / workers),
      bytes_text(of(&Figures::received) / workers));
  fmt::print(
      "       addresses of all to all in {:.2f} s, {} for each worker; a step's orders "
      "and reports {:.1f} ms, {:.1f} us of the driver's processors for each worker\n",
      of(&Figures::network_s),
      bytes_text(of(&Figures::network_sent) / workers),
      of(&Figures::order_ms),
      of(&Figures::order_cpu_ms) / workers * 1e3);
}

}  // namespace

int run(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    int workers = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), workers);
    if (fault != std::errc{} || end != text.data() + text.size() || workers < 1) {
      fmt::print(stderr, "usage: cluster_join [WORKERS]...\n");
      return 2;
    }
    sizes.push_back(workers);
  }
  if (sizes.empty()) {
    sizes = {64, 256, 1024};
  }
  fmt::print("{}\nmedians of {} clusters; mutual TLS over loopback, {} workers to a process\n",
             hardware(),
             kRounds,
             kPlayedByOne);
  for (const int workers : sizes) {
    std::vector<Figures> rounds;
    for (int round = 0; round < kRounds; ++round) {
      rounds.push_back(measured_apart(workers));
    }
    print(workers, rounds);
  }
  return 0;
}

}  // namespace stagecraft::bench::cluster_join
