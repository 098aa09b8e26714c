/// Tests faults between hosts: each is reported with rank, host, cause and the waits between ranks,
/// and training continues with the bits of an undisturbed run.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <iostream>
#include <map>
#include <sstream>

#include <caf/io/all.hpp>
#include <fmt/format.h>

#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/tests/faults/checked_training.h"
#include "stagecraft/tests/faults/noise.h"
#include "stagecraft/tests/faults/process_view.h"
#include "stagecraft/tests/hosts/recording.h"
#include "stagecraft/tests/hosts/slow_link.h"
#include "stagecraft/tests/hosts/test_hosts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

constexpr milliseconds kHeartbeat = 400ms, kSilence = 2s;
/// Bounds events promised within silence + 1 s, on a machine that does other work too.
constexpr milliseconds kLimit = 30s;
constexpr std::uint16_t kPort = 7077;
constexpr int kStranger = 3;  // the host that has no worker
constexpr const char* kWorkerWords = "--join";

TestHosts make_hosts() {
  if (const auto why = TestHosts::obstacle()) {
    SKIP(*why);
  }
  return TestHosts(4);
}

/// Runs two ranks on host-1 and host-2, driven by this test on host-0.
struct Run {
  TestHosts hosts = make_hosts();
  std::string credentials = hosts.folder() + "/cluster";

  Run() {
    hosts.enter(0);
    REQUIRE(run_command({STAGECRAFT_COMMAND, "credentials", "make", credentials, "--workers", "4"})
                .exit_code == 0);
  }

  [[nodiscard]] SpawnOptions options(milliseconds silence = kSilence) const {
    SpawnOptions made{
        .credentials = credentials, .port = kPort, .heartbeat = kHeartbeat, .silence = silence};
    made.hosts = parse_hosts("host-1 addr=10.77.0.2\nhost-2 addr=10.77.0.3\n", "hosts");
    std::istringstream words(hosts.ssh());
    for (std::string word; words >> word;) {
      made.ssh.push_back(word);
    }
    return made;
  }
};

struct LaunchedRun : Run {
  explicit LaunchedRun(milliseconds silence = kSilence)
      : training(Cluster::spawn(2, options(silence)), 2) {}

  CheckedTraining training;

  [[nodiscard]] pid_t process(int rank) const {
    return static_cast<pid_t>(training.cluster().workers()[static_cast<std::size_t>(rank)].process);
  }
  template <class Strike>
  Error error_of(Strike strike) {
    return failure_of(training, strike);
  }
  template <class Strike>
  static Error failure_of(CheckedTraining& training, Strike strike) {
    training.train_step();
    training.save();
    training.train_step();
    const auto failure = training.strike_and_train(std::nullopt, strike, kLimit, /*steps=*/4);
    REQUIRE(failure.has_value());
    std::cout << fmt::format("failed after {:.3f} s (silence {} ms): {}\n",
                             failure->seconds,
                             kSilence.count(),
                             failure->error.what());
    CHECK(failure->error.code() == Errc::WorkerLost);
    return failure->error;
  }
  /// Replaces each rank, and training continues from the saved state; no other worker is left
  /// behind.
  void go_on(const std::vector<Rank>& lost) {
    hosts.heal();
    training.mend(lost, /*recover=*/false);
    CHECK(has_rest(1) == 0);
    CHECK(has_rest(2) == 0);
  }
  /// Returns the worker processes that stay beside the current one and its shell.
  [[nodiscard]] std::size_t has_rest(int host) const {
    std::size_t found = 0;
    const auto is_alone = [&] {
      found = hosts.processes(host, kWorkerWords).size();
      return found <= 2;
    };
    (void)eventually(is_alone, kLimit);
    return found - 2;
  }
  /// Returns the addresses at which driver and workers are reached.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint16_t>> ports() const {
    std::vector<std::pair<std::string, std::uint16_t>> all;
    const std::map<int, pid_t> processes{{0, getpid()}, {1, process(0)}, {2, process(1)}};
    for (const auto& [host, id] : processes) {
      for (const std::uint16_t port : listening_ports(id)) {
        all.emplace_back(TestHosts::address(host), port);
      }
    }
    REQUIRE(all.size() >= 4);
    return all;
  }
  /// While the attack runs, nothing fails and the results do not change.
  template <class Attack>
  void check_unharmed(Attack attack) {
    for (int i = 0; i < 3; ++i) {
      const StepFuture step = training.begin_step();
      attack();
      REQUIRE(step.wait_until(std::chrono::steady_clock::now() + kLimit));
      training.check(step.get());
    }
    training.check_state("after it");
  }
};

/// Checks that the error names the lost rank, its place and cause, and the waits between ranks, or
/// that no rank waits yet.
void check_tells(const Error& error,
                 const std::string& rank,
                 const std::string& host,
                 const std::string& cause) {
  for (const std::string& part : {rank, "on " + host, cause, std::string("wait")}) {
    CHECK_THAT(error.what(), ContainsSubstring(part));
  }
}

// ---- links --------------------------------------------------------------------------------------

TEST_CASE("a link that is down is told with the host, which comes back", "[hosts][faults]") {
  LaunchedRun run;
  const Error error = run.error_of([&] { run.hosts.set_link(2, false); });
  CHECK(error.context().rank == Rank(1));
  check_tells(error, "rank 1 is lost", "host-2", "out of reach");
  SECTION("replaced when it is up again") {
    run.go_on({Rank(1)});
  }
  SECTION("it cannot be replaced before") {
    CHECK_THROWS_WITH(run.training.cluster().replace(Rank(1)),
                      ContainsSubstring("rank 1 on host-2") && ContainsSubstring("ssh"));
    run.go_on({Rank(1)});
  }
}

TEST_CASE("a driver whose own link is down has lost everybody", "[hosts][faults]") {
  LaunchedRun run;
  const Error error = run.error_of([&] { run.hosts.set_link(0, false); });
  CHECK_THAT(error.what(),
             ContainsSubstring("rank 0 is lost") || ContainsSubstring("rank 1 is lost"));
  CHECK_THAT(error.what(), ContainsSubstring("out of reach"));
  run.go_on({Rank(0), Rank(1)});
}

TEST_CASE("a worker of which nothing is heard is told", "[hosts][faults]") {
  LaunchedRun run;
  const Error error = run.error_of([&] { run.hosts.drop(1, 0); });
  CHECK(error.context().rank == Rank(0));
  check_tells(error, "rank 0 is lost", "host-1", "out of reach");
  run.go_on({Rank(0)});
}

TEST_CASE("a worker that hears nothing is told", "[hosts][faults]") {
  LaunchedRun run;
  const Error error = run.error_of([&] { run.hosts.drop(0, 1); });
  CHECK(error.context().rank == Rank(0));
  check_tells(error, "rank 0 is lost", "host-1", "reach");
  run.go_on({Rank(0)});
}

TEST_CASE("a way between two workers that is cut is told with both (CUT-2)", "[hosts][faults]") {
  LaunchedRun run;
  const int from = GENERATE(1, 2);
  const int to = 3 - from;
  const Error error = run.error_of([&] { run.hosts.drop(from, to); });
  check_tells(error, "is lost", "host-1", "do not reach");
  CHECK_THAT(error.what(), ContainsSubstring("on host-2"));
  REQUIRE(error.context().rank.has_value());
  run.go_on({*error.context().rank});  // one of the two, though both may have been sending
}

TEST_CASE("a link that is a hundred times slower is no fault", "[hosts][faults]") {
  // The relay of the slow link drops frames, and a busy machine delays it. TCP sends them again
  // after 0.2 s, 0.4 s and so on.
  LaunchedRun run(10s);
  run.training.train_step();
  {
    const SlowLink slow(run.hosts, 2, kSlowBytesPerSecond);
    const auto begun = std::chrono::steady_clock::now();
    run.check_unharmed([] {});
    run.training.save();
    std::cout << fmt::format("three steps and a save over a slow link: {:.3f} s\n",
                             seconds_since(begun));
  }
  run.check_unharmed([] {});
}

// ---- hosts and processes ------------------------------------------------------------------------

TEST_CASE("a worker that is stopped on its host is told, and ends when it continues",
          "[hosts][faults]") {
  LaunchedRun run;
  const pid_t stopped = run.process(1);
  const Error error = run.error_of([&] { kill(stopped, SIGSTOP); });
  CHECK(error.context().rank == Rank(1));
  check_tells(error, "rank 1 is lost", "host-2", "silence");
  kill(stopped, SIGCONT);
  run.go_on({Rank(1)});
}

TEST_CASE("a worker that ends between steps is told by the next save, with process and host",
          "[hosts][faults]") {
  LaunchedRun run;
  run.training.train_step();
  run.training.save();
  const pid_t killed = run.process(1);
  const Failure failure = run.training.strike_and_save(
      0us, /*trains=*/false, [&] { kill(killed, SIGKILL); }, kLimit);
  CAPTURE(failure.error.what());
  CHECK(failure.error.code() == Errc::WorkerLost);
  CHECK(failure.error.context().rank == Rank(1));
  for (const std::string& part : {fmt::format("process {}", killed),
                                  std::string("on host-2"),
                                  std::string("was killed by signal 9")}) {
    CHECK_THAT(failure.error.what(), ContainsSubstring(part));
  }
  run.go_on({Rank(1)});
}

TEST_CASE("a host that is gone is told, and a worker of another host takes the place",
          "[hosts][faults]") {
  Run run;
  SpawnOptions options = run.options();
  options.hosts.clear();
  options.ssh.clear();
  options.workers_come = true;
  options.interface = "eth0";
  const auto worker = [&](int host) {
    return std::make_unique<RunningCommand>(
        run.hosts.on(host,
                     {STAGECRAFT_COMMAND,
                      "worker",
                      "--join",
                      fmt::format("{}:{}", TestHosts::address(0), kPort),
                      "--credentials",
                      fmt::format("{}/worker-{}", run.credentials, host - 1),
                      "--heartbeat",
                      std::to_string(kHeartbeat.count()),
                      "--silence",
                      std::to_string(kSilence.count())}));
  };
  std::map<int, std::unique_ptr<RunningCommand>> workers;
  workers[1] = worker(1);
  workers[2] = worker(2);
  CheckedTraining training(Cluster::spawn(2, options), 2);
  const auto places = training.cluster().workers();
  const int rank = places[0].address.find(TestHosts::address(2)) == std::string::npos ? 1 : 0;
  const Error error = LaunchedRun::failure_of(training, [&] { run.hosts.lose(2); });
  CHECK(error.context().rank == Rank(rank));
  CHECK_THAT(error.what(),
             ContainsSubstring(fmt::format("rank {} is lost", rank)) &&
                 ContainsSubstring("out of reach") && ContainsSubstring("waits for"));
  workers[kStranger] = worker(kStranger);
  training.mend({Rank(rank)}, /*recover=*/false);
  CHECK_THAT(training.cluster().workers()[static_cast<std::size_t>(rank)].address,
             ContainsSubstring(TestHosts::address(kStranger)));
  CHECK(run.hosts.processes(2, "").empty());
}

TEST_CASE("workers end with a driver that is gone with its link", "[hosts][faults]") {
  Run run;
  RunningCommand driver(run.hosts.on(0,
                                     {STAGECRAFT_COMMAND,
                                      "launch",
                                      "--hosts",
                                      run.hosts.file(1),
                                      "--ssh",
                                      run.hosts.ssh(),
                                      "--",
                                      "train",
                                      "--steps",
                                      "100000",
                                      "--json"}));
  REQUIRE(driver.wait_for_output("\"step\""));
  run.hosts.set_link(0, false);
  driver.send_signal(SIGKILL);
  for (const int process : run.hosts.processes(0, "--steps")) {
    kill(process, SIGKILL);
  }
  const auto all_ended = [&] {
    for (int host = 1; host < run.hosts.size(); ++host) {
      if (!run.hosts.processes(host, kWorkerWords).empty()) {
        return false;
      }
    }
    return true;
  };
  CHECK(eventually(all_ended, kLimit));
}

// ---- strangers ----------------------------------------------------------------------------------

TEST_CASE("garbage from another host at every port harms nobody", "[hosts][faults][hostile]") {
  LaunchedRun run;
  const auto ports = run.ports();
  std::mt19937_64 random(7);
  Noise noise;
  run.check_unharmed([&] {
    run.hosts.at(kStranger, [&] {
      for (const auto& [address, port] : ports) {
        for (int i = 0; i < 6; ++i) {
          noise.make(port, random, address);
        }
      }
    });
  });
}

TEST_CASE("what was said at every port is of no use when said again", "[hosts][faults][hostile]") {
  Run run;
  const Recording recording(run.hosts);
  CheckedTraining training(Cluster::spawn(2, run.options()), 2);
  training.train_step();
  std::map<std::string, int> heard;
  Noise noise;
  for (int i = 0; i < 3; ++i) {
    const StepFuture step = training.begin_step();
    const std::vector<Said> said = recording.said();
    run.hosts.at(kStranger, [&] {
      for (const Said& one : said) {
        noise.say(one.bytes, one.port, one.address);
        ++heard[one.address];
      }
    });
    REQUIRE(step.wait_until(std::chrono::steady_clock::now() + kLimit));
    training.check(step.get());
  }
  for (const int host : {0, 1, 2}) {
    CHECK(heard[TestHosts::address(host)] >= 3);
  }
  training.check_state("after a replay");
}

TEST_CASE("who has no certificate of the cluster does not come in from another host either",
          "[hosts][faults][hostile]") {
  LaunchedRun run;
  const std::string other = run.hosts.folder() + "/other";
  REQUIRE(
      run_command({STAGECRAFT_COMMAND, "credentials", "make", other, "--workers", "1"}).exit_code ==
      0);
  run.check_unharmed([&] {
    const CommandResult stranger =
        run_command(run.hosts.on(kStranger,
                                 {STAGECRAFT_COMMAND,
                                  "worker",
                                  "--join",
                                  fmt::format("{}:{}", TestHosts::address(0), kPort),
                                  "--credentials",
                                  other + "/worker-0"}));
    CHECK(stranger.exit_code == 1);
    CHECK_THAT(stranger.err, ContainsSubstring("both are of the same cluster"));
  });
  run.check_unharmed([&] {
    run.hosts.at(kStranger, [] {
      struct Plain : caf::actor_system_config {
        Plain() {
          set("middleman.heartbeat-interval", caf::timespan(100ms));
          set("middleman.connection-timeout", caf::timespan(500ms));
          load<caf::io::middleman>();
        }
      } config;
      caf::actor_system system(config);
      CHECK_FALSE(system.middleman().remote_actor(TestHosts::address(0), kPort));
    });
  });
}

TEST_CASE("a worker of another build is refused from another host, whatever key it has",
          "[hosts][faults][hostile]") {
  LaunchedRun run;
  run.check_unharmed([&] {
    run.hosts.at(kStranger, [&] {
      ActorHost& host =
          open_control_plane(load_credentials(run.credentials + "/worker-3"), Heartbeat{});
      const AdmissionActor driver = find_admission(host, TestHosts::address(0), kPort, kLimit);
      const Hello hello{.fingerprint = "stagecraft 0.0.1, LibTorch 1.13.0"};
      const auto answer = ask<Welcome>(host, driver, "the driver", kLimit, hello).get();
      CHECK(answer.refusal == "it is another build");
      CHECK(answer.fingerprint == build_fingerprint());
      const auto joined = ask<Joined>(host, driver, "the driver", kLimit, Join{}).get();
      CHECK_FALSE(joined.error.empty());
    });
  });
}

}  // namespace
}  // namespace stagecraft::tests
