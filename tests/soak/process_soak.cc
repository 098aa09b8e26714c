#include "stagecraft/tests/soak/process_soak.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/tests/faults/actor_rounds.h"
#include "stagecraft/tests/faults/noise.h"
#include "stagecraft/tests/faults/process_view.h"

namespace stagecraft::tests {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class ProcessSoak final : public Soak {
 public:
  explicit ProcessSoak(const SoakOptions& options)
      : options_(options),
        training_(Cluster::spawn(kSoakRanks, soak_spawn_options(options)), kSoakRanks) {}

  [[nodiscard]] CheckedTraining& training() override { return training_; }

  [[nodiscard]] Outcome suffer(Fault& fault) override {
    Outcome outcome;
    if (fault.kind == "kill") {
      lose_workers(fault, {fault.rank}, SIGKILL, "was killed by signal 9", kClosedPromise, outcome);
    } else if (fault.kind == "copy") {
      lose_copy(fault, outcome);
    } else if (fault.kind == "shares") {
      lose_shares(fault, outcome);
    } else if (fault.kind == "actors") {
      lose_actors(fault, outcome);
    } else if (fault.kind == "save") {
      lose_while_saving(fault, outcome);
    } else if (fault.kind == "several") {
      // The next rank's memory holds a mirror: a rank that is to recover must not lose both.
      const Rank other((fault.rank.value + (fault.recover ? 2 : 1)) % kSoakRanks);
      lose_workers(
          fault, {fault.rank, other}, SIGKILL, "was killed by signal 9", kClosedPromise, outcome);
    } else if (fault.kind == "stop") {
      lose_workers(
          fault, {fault.rank}, SIGSTOP, "silent", options_.silence + milliseconds(1000), outcome);
    } else if (fault.kind == "exception") {
      throw_in_stage(fault, outcome);
    } else if (fault.kind == "memory") {
      run_out_of_memory(fault, outcome);
    } else if (fault.kind == "garbage") {
      listen_to_noise(fault, outcome);
    } else {
      kill_driver(fault, outcome);
    }
    return outcome;
  }

 private:
  [[nodiscard]] pid_t process(Rank rank) const {
    return static_cast<pid_t>(training_.cluster().workers()[rank.index()].process);
  }

  // ---- faults ---------------------------------------------------------------------------------

  /// The error names one of the struck workers; the others are found when they are replaced.
  void lose_workers(const Fault& fault,
                    const std::vector<Rank>& victims,
                    int signal,
                    const std::string& cause,
                    milliseconds promise,
                    Outcome& outcome) {
    const auto failure = training_.strike_and_train(
        fault.delay,
        [&] {
          for (const Rank victim : victims) {
            ::kill(process(victim), signal);
          }
        },
        kPatience * promise,
        /*steps=*/4);
    require(failure.has_value(), "no step failed");
    outcome.failed(failure->seconds, promise);
    const auto named =
        std::ranges::find(victims, failure->error.context().rank.value_or(victims.front()));
    require_blamed(
        failure->error, Errc::WorkerLost, named == victims.end() ? victims.front() : *named);
    const std::string text = failure->error.what();
    require(text.find(cause) != std::string::npos, "the error does not say what happened: " + text);
    require(text.find(std::to_string(process(*named))) != std::string::npos,
            fmt::format("the error does not name process {}: {}", process(*named), text));
    outcome.went_on(training_.mend(victims, fault.recover));
  }

  /// Kills a rank of a training with copies and without mirrors: another copy has its state.
  void lose_copy(Fault& fault, Outcome& outcome) {
    fault.recover = true;
    lose_one_of({}, copies_, fault, outcome);
  }

  /// Kills a rank of copies that share or divide what they hold: its neighbor's memory has its
  /// part.
  void lose_shares(const Fault& fault, Outcome& outcome) {
    static const std::array<CheckedTraining::TwoCopies, 5> kWays{{
        {.sums = {.shard_optimizer = true}, .divided = "", .mirror = true},
        {.sums = {.bucket_bytes = 300'000, .shard_gradients = true}, .divided = "", .mirror = true},
        {.sums = {.bucket_bytes = 300'000, .shard_parameters = true},
         .divided = "",
         .mirror = true},
        {.sums = {}, .divided = "EP", .mirror = true},
        {.sums = {.bucket_bytes = 300'000, .shard_parameters = true},
         .divided = "EP",
         .mirror = true},
    }};
    const std::size_t way = static_cast<std::size_t>(fault.number) % kWays.size();
    lose_one_of(kWays[way], shares_[way], fault, outcome);
  }

  /// Kills a rank of the training, which it makes if there is none, and mends it.
  void lose_one_of(const CheckedTraining::TwoCopies& way,
                   std::unique_ptr<CheckedTraining>& training,
                   const Fault& fault,
                   Outcome& outcome) {
    if (!training) {
      training = std::make_unique<CheckedTraining>(
          Cluster::spawn(kSoakRanks, soak_spawn_options(options_)), way);
    }
    training->train_step();
    const auto victim =
        static_cast<pid_t>(training->cluster().workers()[fault.rank.index()].process);
    const auto failure = training->strike_and_train(
        fault.delay, [victim] { ::kill(victim, SIGKILL); }, kPatience * kClosedPromise, 4);
    require(failure.has_value(), "no step failed");
    outcome.failed(failure->seconds, kClosedPromise);
    require_blamed(failure->error, Errc::WorkerLost, fault.rank);
    outcome.went_on(training->mend({fault.rank}, fault.recover));
  }

  /// Kills a worker that trains and has an actor, while actors of all ranks exchange tensors.
  void lose_actors(const Fault& fault, Outcome& outcome) {
    constexpr int kRounds = 300;
    const std::chrono::milliseconds limit = kPatience * kClosedPromise;
    ActorRounds actors(training_.cluster());
    actors.begin(kRounds);
    lose_workers(fault, {fault.rank}, SIGKILL, "was killed by signal 9", kClosedPromise, outcome);
    actors.check({fault.rank}, limit);
    actors.replace({fault.rank});
    actors.begin(kRounds);
    training_.train_step();
    actors.check({}, limit);
  }

  /// Kills the worker while its state is read, or between two files: the failed save reports it.
  void lose_while_saving(const Fault& fault, Outcome& outcome) {
    const pid_t victim = process(fault.rank);
    const Failure failure = training_.strike_and_save(
        fault.delay.value_or(std::chrono::microseconds(0)),
        /*trains=*/false,
        [victim] { ::kill(victim, SIGKILL); },
        kPatience * kClosedPromise);
    outcome.failed(failure.seconds, kClosedPromise);
    const std::string text = failure.error.what();
    require(failure.error.code() == Errc::WorkerLost, "a save failed otherwise: " + text);
    for (const std::string& part :
         {std::to_string(victim), std::string("was killed by signal 9")}) {
      require(text.find(part) != std::string::npos, "a save does not say what happened: " + text);
    }
    outcome.went_on(training_.mend({fault.rank}, fault.recover));
  }

  /// Makes the first stage find no embedding, or the last no class; no rank is damaged.
  void throw_in_stage(const Fault& fault, Outcome& outcome) {
    const bool first = fault.recover;
    Data batch = data_with_bad_token();
    if (!first) {
      batch = data(0);
      batch.labels[0].tensor[0] = 77;
    }
    const std::int64_t before = training_.trainer().steps();
    const auto begun = Clock::now();
    const StepFuture step = training_.trainer().step(batch.inputs, batch.labels);
    require(step.wait_until(begun + kPatience * kClosedPromise),
            "a step whose stage throws does not end");
    try {
      (void)step.get();
      throw Violation("a step whose stage throws succeeded");
    } catch (const Error& error) {
      outcome.failed(seconds_since(begun), kClosedPromise);
      require_blamed(error, error.code(), first ? Rank(0) : Rank(kSoakRanks - 1));
      require(error.code() != Errc::WorkerLost, std::string("a rank is lost: ") + error.what());
    }
    outcome.survived = true;
    outcome.went_on(training_.go_on(before));
  }

  /// The worker reports it and stays, or ends, or manages with the memory it has.
  void run_out_of_memory(Fault& fault, Outcome& outcome) {
    const pid_t victim = process(fault.rank);
    // The limit leaves a little room: mapped memory may be freed and requested again within a step.
    constexpr std::uint64_t kAround = 1U << 20U;
    const std::uint64_t spare = fault.random() % (2 * kAround);
    const milliseconds promise = options_.silence + milliseconds(1000);
    const auto failure = training_.strike_and_train(
        fault.delay,
        [&] { limit_address_space(victim, address_space(victim) + spare - kAround); },
        kPatience * promise,
        /*steps=*/4);
    lift_address_limit(victim);
    if (!failure) {
      try {
        training_.check_state("without memory");
        outcome.unfelt = true;
      } catch (const Error&) {
        mend_ended(victim, fault, outcome);
      }
      return;
    }
    outcome.failed(failure->seconds, promise);
    if (failure->error.code() == Errc::WorkerLost) {
      require_blamed(failure->error, Errc::WorkerLost, fault.rank);
      outcome.went_on(training_.mend({fault.rank}, fault.recover));
      return;
    }
    require_blamed(failure->error, Errc::DeviceOutOfMemory, fault.rank);
    try {
      outcome.went_on(training_.go_on(training_.trainer().steps()));
      outcome.survived = true;
    } catch (const Error&) {
      mend_ended(victim, fault, outcome);
    }
  }

  /// Handles a worker that ended because another of its threads had no memory, after its last step
  /// and before the limit was lifted. Rethrows the exception if the worker still runs. Called in a
  /// handler.
  void mend_ended(pid_t victim, const Fault& fault, Outcome& outcome) {
    if (is_running(victim)) {
      throw;
    }
    outcome.went_on(training_.mend({fault.rank}, fault.recover));
  }

  void listen_to_noise(Fault& fault, Outcome& outcome) {
    std::vector<std::uint16_t> ports = listening_ports(getpid());
    require(ports.size() >= 2, "the driver's ports were not found");
    for (const WorkerPlace& worker : training_.cluster().workers()) {
      const auto more = listening_ports(static_cast<pid_t>(worker.process));
      require(!more.empty(), fmt::format("the ports of {} were not found", worker.process));
      ports.insert(ports.end(), more.begin(), more.end());
    }
    Noise noise;
    const std::uint64_t rounds = 2 + fault.random() % 4;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const StepFuture step = training_.begin_step();
      for (const std::uint16_t port : ports) {
        noise.make(port, fault.random);
      }
      require(step.wait_until(Clock::now() + kPatience * kClosedPromise),
              "a step does not end while others speak to our ports");
      training_.check(step.get());
    }
    outcome.unfelt = true;
    training_.check_state("under noise");
  }

  /// Kills the driver of another cluster, which is a separate program: this one, started as a
  /// driver.
  void kill_driver(Fault& fault, Outcome& outcome) {
    RunningCommand driver({"/proc/self/exe", "--driver"});
    if (fault.recover) {  // while it starts
      std::this_thread::sleep_for(milliseconds(fault.random() % 1500));
    } else {
      require(driver.wait_for_output("training\n"), "the other driver did not begin to train");
      std::this_thread::sleep_for(instant(fault.random));
    }
    const auto begun = Clock::now();
    driver.send_signal(SIGKILL);
    // Its workers share its standard output, so the end of the output is their end.
    const CommandResult result =
        driver.wait(std::chrono::duration_cast<std::chrono::seconds>(kPatience * kOrphanPromise));
    outcome.failed(seconds_since(begun), kOrphanPromise);
    require(!result.timed_out, "workers outlive their driver");
    std::istringstream words(result.out);
    for (pid_t worker = 0; words >> worker;) {
      while (is_running(worker)) {
        require(Clock::now() < begun + kPatience * kOrphanPromise,
                fmt::format("worker {} outlives its driver", worker));
        std::this_thread::sleep_for(milliseconds(1));
      }
    }
    require(fault.recover || result.out.find(' ') != std::string::npos, "it had no workers");
  }

  const SoakOptions options_;
  CheckedTraining training_;
  std::unique_ptr<CheckedTraining> copies_;  ///< made by the first fault that needs it
  std::array<std::unique_ptr<CheckedTraining>, 5> shares_;  ///< likewise, by way
};

}  // namespace

std::unique_ptr<Soak> make_process_soak(const SoakOptions& options) {
  return std::make_unique<ProcessSoak>(options);
}

}  // namespace stagecraft::tests
