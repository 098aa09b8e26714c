/// Trains on worker processes and has happen to them, at random instants, what happens to
/// processes; every step that succeeds is compared with a run that nothing happened to.
///
///   stagecraft_soak [--faults N] [--seed S] [--silence MS] [--only KIND]
///
/// Prints what was measured and exits with 0; with 1, seed and number of the fault at the first
/// broken promise. Everything is drawn from seed and number, but when a strike meets which
/// instruction is up to the machine.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/soak/noise.h"
#include "stagecraft/tests/soak/process_view.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kRanks = 4;
constexpr std::array<const char*, 7> kKinds{
    "kill", "several", "stop", "exception", "memory", "garbage", "driver"};
/// A promise is measured and printed; a machine that is busy with other things may take so many
/// times as long before it counts as broken.
constexpr int kPatience = 10;
constexpr milliseconds kClosedPromise{2000};
constexpr milliseconds kOrphanPromise{10'000};
constexpr milliseconds kGoOnLimit{60'000};
constexpr unsigned kHangSeconds = 180;  // of one fault, all told

struct Options {
  int faults = 20;
  std::uint64_t seed = 1;
  milliseconds silence{1000};
  std::string only;
  bool driver = false;  ///< this is the driver that is to be killed
};

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void require(bool kept, const std::string& promise) {
  if (!kept) {
    throw Violation(promise);
  }
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// ---- the run that nothing happens to ------------------------------------------------------------

/// What a step was to give, and what is there after it.
struct Expected {
  ReferenceStep result;
  StateDict weights, buffers;
};

class Course {
 public:
  explicit Course(const Program& program)
      : reference_(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1}) {
    course_.push_back(state());
  }

  /// After so many updates.
  const Expected& after(std::int64_t updates) {
    while (std::ssize(course_) <= updates) {
      const Data batch = data(std::ssize(course_) - 1);
      ReferenceStep result = reference_.step(batch.inputs, batch.labels);
      course_.push_back(state());
      course_.back().result = std::move(result);
    }
    return course_[static_cast<std::size_t>(updates)];
  }

 private:
  [[nodiscard]] Expected state() const {
    return {.result = {}, .weights = copies_of("weight:"), .buffers = copies_of("buffer:")};
  }

  [[nodiscard]] StateDict copies_of(std::string_view kind) const {
    StateDict copies;
    for (const StateTensor& state : reference_.state()) {
      if (state.name.starts_with(kind)) {
        copies.emplace_back(state.name.substr(kind.size()), state.tensor.detach().clone());
      }
    }
    return without_spare(std::move(copies));
  }

  Reference reference_;
  std::vector<Expected> course_;
};

// ---- faults -------------------------------------------------------------------------------------

struct Fault {
  int number = 0;
  std::string kind;
  std::mt19937_64 random;
  Rank rank{0};
  bool recover = false;                            ///< from mirrors, else from the file
  std::optional<std::chrono::microseconds> delay;  ///< into a step; nothing: between two
};

/// Every kind as often, in an order that the seed says.
std::string kind_of(const Options& options, int number) {
  if (!options.only.empty()) {
    return options.only;
  }
  constexpr int kSize = kKinds.size();
  std::vector<std::string> order(kKinds.begin(), kKinds.end());
  std::mt19937_64 random(options.seed * 1'000 + static_cast<std::uint64_t>(number / kSize));
  std::ranges::shuffle(order, random);
  return order[static_cast<std::size_t>(number % kSize)];
}

struct Failure {
  Error error;
  double seconds = 0.0;  ///< from the strike on
};

struct Figures {
  int count = 0;
  int unfelt = 0;                        ///< no step failed, as for garbage none may
  int survived = 0;                      ///< a step failed, and no worker had to be replaced
  int late = 0;                          ///< failed later than promised, on this machine
  double to_fail = 0.0, to_go_on = 0.0;  ///< s, the longest

  void failed(double seconds, milliseconds promise) {
    to_fail = std::max(to_fail, seconds);
    late += seconds > std::chrono::duration<double>(promise).count() ? 1 : 0;
  }
};

SpawnOptions spawn_options(const Options& options) {
  return {.program = "/proc/self/exe",  // no other to build
          .heartbeat = options.silence / 5,
          .silence = options.silence};
}

/// Rows wide enough for weights and gradients to be memory of their own to the allocator.
Program make_wide_program() {
  return make_program({.stages = kRanks, .width = 256});
}

class Soak {
 public:
  explicit Soak(const Options& options)
      : options_(options),
        cluster_(Cluster::spawn(kRanks, spawn_options(options))),
        trainer_(cluster_,
                 program_,
                 make_schedule("1f1b", program_),
                 AdamW{.lr = 1e-2},
                 {.seed = 5, .mirror = true}),
        file_(folder_.path() + "/weights.ckpt") {
    save();
  }

  void suffer(Fault& fault) {
    Figures& figures = figures_[fault.kind];
    ++figures.count;
    for (std::uint64_t quiet = fault.random() % 3; quiet > 0; --quiet) {
      train_step();
    }
    if (fault.number % 3 == 0) {
      save();
    }
    if (fault.kind == "kill") {
      lose_workers(fault, {fault.rank}, SIGKILL, "was killed by signal 9", kClosedPromise, figures);
    } else if (fault.kind == "several") {
      // A mirror is in the next rank's memory: who is to recover may not lose both.
      const Rank other((fault.rank.value + (fault.recover ? 2 : 1)) % kRanks);
      lose_workers(
          fault, {fault.rank, other}, SIGKILL, "was killed by signal 9", kClosedPromise, figures);
    } else if (fault.kind == "stop") {
      lose_workers(
          fault, {fault.rank}, SIGSTOP, "silent", options_.silence + milliseconds(1000), figures);
    } else if (fault.kind == "exception") {
      throw_in_stage(fault, figures);
    } else if (fault.kind == "memory") {
      run_out_of_memory(fault, figures);
    } else if (fault.kind == "garbage") {
      listen_to_noise(fault, figures);
    } else {
      kill_driver(fault, figures);
    }
    require(figures.to_go_on <= std::chrono::duration<double>(kGoOnLimit).count(),
            fmt::format("went on only after {:.1f} s", figures.to_go_on));
  }

  [[nodiscard]] const std::map<std::string, Figures>& figures() const { return figures_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }

  /// An instant of a step, or a little behind it.
  [[nodiscard]] std::chrono::microseconds instant(std::mt19937_64& random) const {
    std::uniform_real_distribution<double> part(0.0, 1.2);
    return std::chrono::microseconds(static_cast<std::int64_t>(1e6 * step_seconds_ * part(random)));
  }

 private:
  [[nodiscard]] pid_t process(Rank rank) const {
    return static_cast<pid_t>(cluster_.workers()[rank.index()].process);
  }

  // ---- training -------------------------------------------------------------------------------

  StepFuture begin_step() {
    const Data batch = data(trainer_.steps());
    return trainer_.step(batch.inputs, batch.labels);
  }

  void check(const StepResult& result) {
    const ReferenceStep& expected = course_.after(result.step).result;
    require(result.losses == expected.losses && result.gradient_norm == expected.gradient_norm,
            fmt::format("step {} has other losses than in the unbroken run", result.step));
    require(trainer_.steps() == result.step, "steps() is not the step that succeeded");
    step_seconds_ = 0.9 * step_seconds_ + 0.1 * std::min(result.seconds, 0.5);
    ++steps_;
  }

  void train_step() { check(begin_step().get()); }

  /// Of all ranks, as they are now.
  void check_state(const std::string& when) {
    const Expected& expected = course_.after(trainer_.steps());
    require(same_bits(weights_of(trainer_), expected.weights),
            "other weights than in the unbroken run " + when);
    require(same_bits(buffers_of(trainer_), expected.buffers),
            "other buffers than in the unbroken run " + when);
  }

  void save() {
    trainer_.save(file_);
    saved_ = trainer_.steps();
  }

  /// Strikes at the fault's instant and trains on until a step fails, `steps` of them at most.
  std::optional<Failure> strike_and_train(const Fault& fault,
                                          const std::function<void()>& strike,
                                          milliseconds promise,
                                          int steps) {
    StepFuture step;
    if (fault.delay) {
      step = begin_step();
      const auto when = Clock::now() + *fault.delay;
      while (Clock::now() < when) {
        std::this_thread::yield();
      }
    }
    const auto struck = Clock::now();
    strike();
    for (int i = 0; i < steps; ++i) {
      const std::int64_t before = trainer_.steps();
      if (!step.valid()) {
        step = begin_step();
      }
      require(step.wait_until(Clock::now() + kPatience * promise),
              fmt::format("a step has neither ended nor failed {} s after it was struck",
                          (kPatience * promise).count() / 1000));
      try {
        check(step.get());
      } catch (const Error& error) {
        require(trainer_.steps() == before, "a step that failed was counted");
        return Failure{error, seconds_since(struck)};
      }
      step = StepFuture();
    }
    return std::nullopt;
  }

  /// New workers, the last state that is kept, and a step.
  void mend(const Fault& fault, const std::vector<Rank>& lost, Figures& figures) {
    const auto begun = Clock::now();
    const std::int64_t committed = trainer_.steps();
    for (const Rank rank : lost) {
      cluster_.replace(rank);
    }
    if (fault.recover) {
      const std::int64_t back = trainer_.recover();
      require(back == committed || back + 1 == committed,
              fmt::format("recover() went to {} after {} steps", back, committed));
    } else {
      trainer_.load(file_);
      require(trainer_.steps() == saved_, "load() did not go to where the file was saved");
    }
    train_step();
    figures.to_go_on = std::max(figures.to_go_on, seconds_since(begun));
    check_state(fault.recover ? "after recover()" : "after load()");
  }

  // ---- what may happen ------------------------------------------------------------------------

  /// One of those that are struck is named; the others are found when they are replaced.
  void lose_workers(const Fault& fault,
                    const std::vector<Rank>& victims,
                    int signal,
                    const std::string& cause,
                    milliseconds promise,
                    Figures& figures) {
    const auto failure = strike_and_train(
        fault,
        [&] {
          for (const Rank victim : victims) {
            ::kill(process(victim), signal);
          }
        },
        promise,
        /*steps=*/4);
    require(failure.has_value(), "no step failed");
    figures.failed(failure->seconds, promise);
    const auto named =
        std::ranges::find(victims, failure->error.context().rank.value_or(victims.front()));
    require_blamed(
        failure->error, Errc::WorkerLost, named == victims.end() ? victims.front() : *named);
    const std::string text = failure->error.what();
    require(text.find(cause) != std::string::npos, "the error does not say what happened: " + text);
    require(text.find(std::to_string(process(*named))) != std::string::npos,
            fmt::format("the error does not name process {}: {}", process(*named), text));
    mend(fault, victims, figures);
  }

  static void require_blamed(const Error& error, Errc code, Rank rank) {
    require(error.code() == code && error.context().rank == rank,
            fmt::format("expected {} of rank {}, the step failed with {}: {}",
                        to_string(code),
                        rank.value,
                        to_string(error.code()),
                        error.what()));
  }

  /// The first stage finds no embedding, or the last no class: no rank is any the worse for it.
  void throw_in_stage(const Fault& fault, Figures& figures) {
    const bool first = fault.recover;
    Data batch = data_with_bad_token();
    if (!first) {
      batch = data(0);
      batch.labels[0].tensor[0] = 77;
    }
    const std::int64_t before = trainer_.steps();
    const auto begun = Clock::now();
    const StepFuture step = trainer_.step(batch.inputs, batch.labels);
    require(step.wait_until(begun + kPatience * kClosedPromise),
            "a step whose stage throws does not end");
    try {
      (void)step.get();
      throw Violation("a step whose stage throws succeeded");
    } catch (const Error& error) {
      figures.failed(seconds_since(begun), kClosedPromise);
      require_blamed(error, error.code(), first ? Rank(0) : Rank(kRanks - 1));
      require(error.code() != Errc::WorkerLost, std::string("a rank is lost: ") + error.what());
    }
    ++figures.survived;
    go_on(before, figures);
  }

  /// Nobody was lost: all ranks have the weights from before, and train on.
  void go_on(std::int64_t before, Figures& figures) {
    const auto begun = Clock::now();
    require(trainer_.steps() == before, "a step that failed was counted");
    check_state("after a step that failed");
    train_step();
    figures.to_go_on = std::max(figures.to_go_on, seconds_since(begun));
  }

  /// Its worker says so and stays, or ends; or it gets by with what it has.
  void run_out_of_memory(Fault& fault, Figures& figures) {
    const pid_t victim = process(fault.rank);
    // Around what it has: mapped memory may be freed and be asked for anew within a step.
    constexpr std::uint64_t kAround = 1U << 20U;
    const std::uint64_t spare = fault.random() % (2 * kAround);
    const milliseconds promise = options_.silence + milliseconds(1000);
    const auto failure = strike_and_train(
        fault,
        [&] { limit_address_space(victim, address_space(victim) + spare - kAround); },
        promise,
        /*steps=*/4);
    lift_address_limit(victim);
    if (!failure) {
      ++figures.unfelt;
      check_state("without memory");
      return;
    }
    figures.failed(failure->seconds, promise);
    if (failure->error.code() == Errc::WorkerLost) {
      require_blamed(failure->error, Errc::WorkerLost, fault.rank);
      mend(fault, {fault.rank}, figures);
      return;
    }
    require_blamed(failure->error, Errc::DeviceOutOfMemory, fault.rank);
    try {
      go_on(trainer_.steps(), figures);
      ++figures.survived;
    } catch (const Error&) {
      // Behind its answer, and before the limit was lifted, another of its threads had no memory.
      if (is_running(victim)) {
        throw;
      }
      mend(fault, {fault.rank}, figures);
    }
  }

  void listen_to_noise(Fault& fault, Figures& figures) {
    std::vector<std::uint16_t> ports = listening_ports(getpid());
    require(ports.size() >= 2, "the driver's ports were not found");
    for (const WorkerPlace& worker : cluster_.workers()) {
      const auto more = listening_ports(static_cast<pid_t>(worker.process));
      require(!more.empty(), fmt::format("the ports of {} were not found", worker.process));
      ports.insert(ports.end(), more.begin(), more.end());
    }
    Noise noise;
    const std::uint64_t rounds = 2 + fault.random() % 4;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const StepFuture step = begin_step();
      for (const std::uint16_t port : ports) {
        noise.make(port, fault.random);
      }
      require(step.wait_until(Clock::now() + kPatience * kClosedPromise),
              "a step does not end while others speak to our ports");
      check(step.get());
    }
    ++figures.unfelt;
    check_state("under noise");
  }

  /// Of another cluster, which is a program of its own: this one, started as a driver.
  void kill_driver(Fault& fault, Figures& figures) const {
    RunningCommand driver({"/proc/self/exe", "--driver"});
    if (fault.recover) {  // while it starts
      std::this_thread::sleep_for(milliseconds(fault.random() % 1500));
    } else {
      require(driver.wait_for_output("training\n"), "the other driver did not begin to train");
      std::this_thread::sleep_for(instant(fault.random));
    }
    const auto begun = Clock::now();
    driver.send_signal(SIGKILL);
    // Its workers have its standard output: the end of that is theirs.
    const CommandResult result =
        driver.wait(std::chrono::duration_cast<std::chrono::seconds>(kPatience * kOrphanPromise));
    figures.failed(seconds_since(begun), kOrphanPromise);
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

  const Options options_;
  const TemporaryFolder folder_;
  const Program program_ = make_wide_program();
  Course course_{program_};
  const Cluster cluster_;
  Trainer trainer_;
  const std::string file_;
  std::int64_t saved_ = 0;
  std::int64_t steps_ = 0;
  double step_seconds_ = 0.01;
  std::map<std::string, Figures> figures_;
};

// ---- the program --------------------------------------------------------------------------------

std::string hang_text;  // NOLINT: a signal handler's

void watch(const Options& options, const Fault& fault) {
  hang_text =
      fmt::format("seed {}, fault {} ({}): hangs\n", options.seed, fault.number, fault.kind);
  std::signal(SIGALRM, [](int) {
    static_cast<void>(!write(STDERR_FILENO, hang_text.data(), hang_text.size()));
    _exit(1);
  });
  alarm(kHangSeconds);
}

Fault draw(const Options& options, const Soak& soak, int number) {
  std::seed_seq seed{options.seed, static_cast<std::uint64_t>(number)};
  Fault fault;
  fault.number = number;
  fault.kind = kind_of(options, number);
  fault.random.seed(seed);
  fault.rank = Rank(static_cast<std::int32_t>(fault.random() % kRanks));
  fault.recover = fault.random() % 2 == 0;
  if (fault.random() % 4 != 0) {
    fault.delay = soak.instant(fault.random);
  }
  return fault;
}

void print(const Soak& soak, double seconds) {
  fmt::print("{:<10} {:>6} {:>8} {:>8} {:>5} {:>10} {:>10}\n",
             "kind",
             "faults",
             "unfelt",
             "survived",
             "late",
             "to fail",
             "to go on");
  for (const auto& [kind, f] : soak.figures()) {
    fmt::print("{:<10} {:>6} {:>8} {:>8} {:>5} {:>8.3f} s {:>8.3f} s\n",
               kind,
               f.count,
               f.unfelt,
               f.survived,
               f.late,
               f.to_fail,
               f.to_go_on);
  }
  fmt::print("{} steps bit-equal to the unbroken run, {:.0f} s, {} processors\n",
             soak.steps(),
             seconds,
             std::thread::hardware_concurrency());
}

int run(const Options& options) {
  const auto begun = Clock::now();
  // Of the workers: whatever is larger is had from the system each time, and no thread has memory
  // in reserve, so that its lack is felt.
  setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1);
  setenv("MALLOC_ARENA_MAX", "1", 1);
  Soak soak(options);
  for (int number = 0; number < options.faults; ++number) {
    Fault fault = draw(options, soak, number);
    watch(options, fault);
    try {
      soak.suffer(fault);
    } catch (const std::exception& error) {
      fmt::print(
          stderr,
          "seed {}, fault {} ({} of rank {}, {}, then {}): {}\n",
          options.seed,
          number,
          fault.kind,
          fault.rank.value,
          fault.delay ? fmt::format("{} us into a step", fault.delay->count()) : "between steps",
          fault.recover ? "recover" : "load",
          error.what());
      return 1;
    }
  }
  alarm(0);
  print(soak, seconds_since(begun));
  return 0;
}

/// Trains until it is killed, or for as long as nobody does.
[[noreturn]] void run_driver(const Options& options) {
  alarm(kHangSeconds);
  const Program program = make_wide_program();
  const Cluster cluster = Cluster::spawn(kRanks, spawn_options(options));
  Trainer trainer(cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2});
  for (const WorkerPlace& worker : cluster.workers()) {
    std::cout << worker.process << ' ';
  }
  std::cout << "training" << std::endl;
  while (true) {
    const Data batch = data(trainer.steps());
    (void)trainer.step(batch.inputs, batch.labels).get();
  }
}

template <class Number>
Number number_in(const std::string& option, const std::string& text) {
  Number number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size()) {
    throw std::invalid_argument(option + " expects a whole number, found \"" + text + '"');
  }
  return number;
}

Options parse(const std::vector<std::string>& words) {
  Options options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& option = words[i];
    if (option == "--driver") {
      options.driver = true;
      continue;
    }
    const std::string text = ++i < words.size() ? words[i] : "";
    if (option == "--faults") {
      options.faults = number_in<int>(option, text);
    } else if (option == "--seed") {
      options.seed = number_in<std::uint64_t>(option, text);
    } else if (option == "--silence") {
      options.silence = milliseconds(number_in<int>(option, text));
    } else if (option == "--only" && std::ranges::find(kKinds, text) != kKinds.end()) {
      options.only = text;
    } else {
      throw std::invalid_argument(
          "expected --faults N, --seed S, --silence MS or --only "
          "kill|several|stop|exception|memory|garbage|driver, found \"" +
          option + '"');
    }
  }
  return options;
}

}  // namespace
}  // namespace stagecraft::tests

int main(int argc, char** argv) {
  using namespace stagecraft::tests;
  if (stagecraft::is_worker(argc, argv)) {
    return stagecraft::worker_main(argc, argv);
  }
  try {
    const Options options = parse({argv + 1, argv + argc});
    if (options.driver) {
      run_driver(options);
    }
    return run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
