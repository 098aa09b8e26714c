#include "stagecraft/tests/soak/hosts_soak.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/tests/faults/noise.h"
#include "stagecraft/tests/faults/process_view.h"
#include "stagecraft/tests/hosts/recording.h"
#include "stagecraft/tests/hosts/slow_link.h"
#include "stagecraft/tests/hosts/test_hosts.h"
#include "stagecraft/tests/soak/process_soak.h"

namespace stagecraft::tests {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kDriverHost = 0, kOutsider = kSoakRanks + 1;
constexpr milliseconds kSlowLimit{120'000};
constexpr std::size_t kMostReplayed = 40;
/// Each worker has two: the shell that sshd starts, and its child.
constexpr std::size_t kProcessesOfWorker = 2;
constexpr const char* kWorkerWords = "--join";

int host_of(Rank rank) {
  return rank.value + 1;
}

/// Returns this program's path, for programs that see another one at /proc/self/exe.
std::string own_path() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

class HostsSoak final : public Soak {
 public:
  explicit HostsSoak(const SoakOptions& options) : options_(options), hosts_(kOutsider + 1) {
    hosts_.enter(kDriverHost);
    recording_ = std::make_unique<Recording>(hosts_);
    training_ =
        std::make_unique<CheckedTraining>(Cluster::spawn(kSoakRanks, spawn_options()), kSoakRanks);
  }

  [[nodiscard]] CheckedTraining& training() override { return *training_; }

  [[nodiscard]] Outcome suffer(Fault& fault) override {
    const int host = host_of(fault.rank);
    const milliseconds silence = options_.silence + milliseconds(1000);
    Outcome outcome;
    if (fault.kind == "kill") {
      lose(fault, outcome, kClosedPromise, "was killed by signal 9", [&] {
        ::kill(process(fault.rank), SIGKILL);
      });
    } else if (fault.kind == "save") {
      lose_while_saving(fault, outcome);
    } else if (fault.kind == "stop") {
      stop(fault, outcome, silence);
    } else if (fault.kind == "link") {
      lose(fault, outcome, silence, "out of reach", [&] { hosts_.set_link(host, false); });
    } else if (fault.kind == "driver-link") {
      lose_driver_link(fault, outcome, silence);
    } else if (fault.kind == "deaf") {
      lose(fault, outcome, silence, "reach", [&] { hosts_.drop(kDriverHost, host); });
    } else if (fault.kind == "mute") {
      lose(fault, outcome, silence, "out of reach", [&] { hosts_.drop(host, kDriverHost); });
    } else if (fault.kind == "between") {
      cut_between(fault, outcome, silence);
    } else if (fault.kind == "slow") {
      slow_down(fault, outcome);
    } else if (fault.kind == "gone") {
      lose(fault, outcome, silence, "out of reach", [&] { hosts_.lose(host); });
    } else if (fault.kind == "garbage" || fault.kind == "replay") {
      listen_to_strangers(fault, outcome);
    } else {
      kill_driver(fault, outcome);
    }
    return outcome;
  }

 private:
  [[nodiscard]] SpawnOptions spawn_options() const {
    SpawnOptions made = soak_spawn_options(options_);
    made.hosts = read_hosts(worker_hosts());
    std::istringstream words(hosts_.ssh());
    for (std::string word; words >> word;) {
      made.ssh.push_back(word);
    }
    return made;
  }

  /// Returns the hosts' file, without the outsider.
  [[nodiscard]] std::string worker_hosts() const {
    std::string text = read_text_file(hosts_.file(1));
    return folder_.write("hosts", text.substr(0, text.find(TestHosts::name(kOutsider))));
  }

  [[nodiscard]] pid_t process(Rank rank) const {
    return static_cast<pid_t>(training_->cluster().workers()[rank.index()].process);
  }

  // ---- faults ---------------------------------------------------------------------------------

  /// Loses the rank's worker by `strike`; the error must name the worker, its host and the cause.
  void lose(const Fault& fault,
            Outcome& outcome,
            milliseconds promise,
            const std::string& cause,
            const std::function<void()>& strike) {
    const Failure failure = strike_and_fail(fault, outcome, promise, strike);
    require_blamed(failure.error, Errc::WorkerLost, fault.rank);
    require_said(failure.error, {"on " + TestHosts::name(host_of(fault.rank)), cause});
    mend(fault, outcome, {fault.rank});
  }

  /// Killed while its state is read, between two files, or at a step between them: what fails says
  /// so (CR-3).
  void lose_while_saving(const Fault& fault, Outcome& outcome) {
    const pid_t victim = process(fault.rank);
    const Failure failure = training_->strike_and_save(
        fault.delay.value_or(std::chrono::microseconds(0)),
        /*trains=*/fault.number % 2 == 1,
        [victim] { ::kill(victim, SIGKILL); },
        kPatience * kClosedPromise);
    outcome.failed(failure.seconds, kClosedPromise);
    require(failure.error.code() == Errc::WorkerLost,
            fmt::format("a save failed otherwise: {}", failure.error.what()));
    require_said(failure.error,
                 {fmt::format("rank {} is lost", fault.rank.value),
                  "on " + TestHosts::name(host_of(fault.rank)),
                  "was killed by signal 9"});
    mend(fault, outcome, {fault.rank});
  }

  Failure strike_and_fail(const Fault& fault,
                          Outcome& outcome,
                          milliseconds promise,
                          const std::function<void()>& strike) {
    const auto failure =
        training_->strike_and_train(fault.delay, strike, kPatience * promise, /*steps=*/4);
    require(failure.has_value(), "no step failed");
    outcome.failed(failure->seconds, promise);
    return *failure;
  }

  static void require_said(const Error& error, const std::vector<std::string>& parts) {
    const std::string text = error.what();
    for (const std::string& part : parts) {
      require(text.find(part) != std::string::npos,
              fmt::format("the error does not say \"{}\": {}", part, text));
    }
  }

  /// Opens all links again before any worker is replaced.
  void mend(const Fault& fault, Outcome& outcome, const std::vector<Rank>& lost) {
    hosts_.heal();
    if (fault.kind == "gone") {
      hosts_.restore(host_of(fault.rank));
    }
    outcome.went_on(training_->mend(lost, fault.recover && lost.size() == 1));
    require_no_rest();
  }

  /// A stopped worker ends when it continues: no signal from the driver reaches it.
  void stop(const Fault& fault, Outcome& outcome, milliseconds promise) {
    const pid_t victim = process(fault.rank);
    const Failure failure =
        strike_and_fail(fault, outcome, promise, [&] { ::kill(victim, SIGSTOP); });
    require_blamed(failure.error, Errc::WorkerLost, fault.rank);
    require_said(failure.error,
                 {"on " + TestHosts::name(host_of(fault.rank)), "silence", std::to_string(victim)});
    ::kill(victim, SIGCONT);
    mend(fault, outcome, {fault.rank});
  }

  void lose_driver_link(const Fault& fault, Outcome& outcome, milliseconds promise) {
    const Failure failure =
        strike_and_fail(fault, outcome, promise, [&] { hosts_.set_link(kDriverHost, false); });
    require_blamed(failure.error, Errc::WorkerLost, failure.error.context().rank.value_or(Rank(0)));
    require_said(failure.error, {"out of reach"});
    std::vector<Rank> all;
    for (int rank = 0; rank < kSoakRanks; ++rank) {
      all.emplace_back(rank);
    }
    mend(fault, outcome, all);
  }

  /// Cuts a rank from the rank that takes its activations or its gradients; the driver hears both.
  void cut_between(const Fault& fault, Outcome& outcome, milliseconds promise) {
    const int step = fault.recover ? 1 : -1;
    const Rank to(
        fault.rank.value +
        (fault.rank.value + step < 0 || fault.rank.value + step == kSoakRanks ? -step : step));
    const Failure failure = strike_and_fail(
        fault, outcome, promise, [&] { hosts_.drop(host_of(fault.rank), host_of(to)); });
    require_blamed(failure.error, Errc::WorkerLost, failure.error.context().rank.value_or(Rank(0)));
    const Rank named = *failure.error.context().rank;
    require(named == fault.rank || named == to,
            fmt::format("rank {} is blamed for the way from rank {} to rank {}",
                        named.value,
                        fault.rank.value,
                        to.value));
    require_said(
        failure.error,
        {"do not reach", TestHosts::name(host_of(fault.rank)), TestHosts::name(host_of(to))});
    mend(fault, outcome, {named});
  }

  /// No step fails, however long it takes.
  void slow_down(const Fault& fault, Outcome& outcome) {
    const SlowLink slow(hosts_, host_of(fault.rank), kSlowBytesPerSecond);
    for (int i = 0; i < 2; ++i) {
      const StepFuture step = training_->begin_step();
      require(step.wait_until(Clock::now() + kSlowLimit), "a step hangs on a slow link");
      training_->check(step.get());
    }
    outcome.unfelt = true;
    training_->check_state("over a slow link");
  }

  // ---- strangers ------------------------------------------------------------------------------

  /// Returns the addresses of the driver's and the workers' ports.
  [[nodiscard]] std::vector<std::pair<std::string, std::uint16_t>> ports() const {
    std::vector<std::pair<std::string, std::uint16_t>> all;
    const auto add = [&all](int host, pid_t process) {
      const auto found = listening_ports(process);
      require(!found.empty(), fmt::format("the ports of {} were not found", process));
      for (const std::uint16_t port : found) {
        all.emplace_back(TestHosts::address(host), port);
      }
    };
    add(kDriverHost, getpid());
    for (int rank = 0; rank < kSoakRanks; ++rank) {
      add(host_of(Rank(rank)), process(Rank(rank)));
    }
    return all;
  }

  void listen_to_strangers(Fault& fault, Outcome& outcome) {
    const auto all = ports();
    std::vector<Said> said = recording_->said();
    require(said.size() >= 2, "nothing was recorded");
    // All connections stay open, so a long soak would use up the driver's own descriptors.
    std::ranges::shuffle(said, fault.random);
    said.resize(std::min(said.size(), kMostReplayed));
    Noise noise;
    const std::uint64_t rounds = 2 + fault.random() % 4;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const StepFuture step = training_->begin_step();
      hosts_.at(kOutsider, [&] {
        if (fault.kind == "garbage") {
          for (const auto& [address, port] : all) {
            noise.make(port, fault.random, address);
          }
        } else {
          for (const Said& one : said) {
            noise.say(one.bytes, one.port, one.address);
          }
        }
      });
      require(step.wait_until(Clock::now() + kPatience * kClosedPromise),
              "a step does not end while others speak to our ports");
      training_->check(step.get());
    }
    outcome.unfelt = true;
    training_->check_state("under noise");
  }

  // ---- leftovers ------------------------------------------------------------------------------

  /// Kills the driver of another cluster on the same hosts.
  void kill_driver(Fault& fault, Outcome& outcome) {
    RunningCommand driver({"env",
                           "STAGECRAFT_HOSTS=" + worker_hosts(),
                           "STAGECRAFT_SSH=" + hosts_.ssh(),
                           own_path(),
                           "--driver",
                           "--silence",
                           std::to_string(options_.silence.count())});
    if (fault.recover) {  // while it starts
      std::this_thread::sleep_for(milliseconds(fault.random() % 1500));
    } else {
      require(driver.wait_for_output("training\n"), "the other driver did not begin to train");
      std::this_thread::sleep_for(instant(fault.random));
    }
    const auto begun = Clock::now();
    driver.send_signal(SIGKILL);
    static_cast<void>(
        driver.wait(std::chrono::duration_cast<std::chrono::seconds>(kPatience * kOrphanPromise)));
    require_no_rest();
    outcome.failed(seconds_since(begun), kOrphanPromise);
  }

  /// Checks that no host has a worker other than the current one.
  void require_no_rest() const {
    const auto deadline = Clock::now() + kPatience * kOrphanPromise;
    for (int rank = 0; rank < kSoakRanks; ++rank) {
      const int host = host_of(Rank(rank));
      while (hosts_.processes(host, kWorkerWords).size() > kProcessesOfWorker) {
        require(Clock::now() < deadline,
                fmt::format("a worker is left behind on {}", TestHosts::name(host)));
        std::this_thread::sleep_for(milliseconds(10));
      }
    }
  }

  const SoakOptions options_;
  const TemporaryFolder folder_;
  TestHosts hosts_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<CheckedTraining> training_;
};

}  // namespace

std::unique_ptr<Soak> make_hosts_soak(const SoakOptions& options) {
  if (const auto why = TestHosts::obstacle()) {
    throw std::runtime_error("there are no hosts to have faults on: " + *why);
  }
  return std::make_unique<HostsSoak>(options);
}

}  // namespace stagecraft::tests
