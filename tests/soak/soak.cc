/// Trains on worker processes and causes faults at random instants: of processes, with --hosts
/// between hosts, or with --command of runs of `stagecraft train --restarts`. Compares every step
/// that succeeds with an undisturbed run.
///
///   stagecraft_soak [--hosts|--command] [--faults N] [--seed S] [--silence MS] [--only KIND]
///
/// Prints the measurements and exits with 0; at the first broken promise prints seed and number of
/// the fault and exits with 1. Seed and number determine everything, except which instruction a
/// strike meets, which depends on the machine.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/median.h"
#include "stagecraft/tests/faults/actor_rounds.h"
#include "stagecraft/tests/soak/command_soak.h"
#include "stagecraft/tests/soak/fault.h"
#include "stagecraft/tests/soak/hosts_soak.h"
#include "stagecraft/tests/soak/process_soak.h"

namespace stagecraft::tests {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kGoOnLimit = 60.0;     // s
constexpr unsigned kHangSeconds = 180;  // of one fault in total

std::span<const char* const> kinds_of(const SoakOptions& options) {
  return options.hosts     ? std::span<const char* const>(kHostFaults)
         : options.command ? std::span<const char* const>(kCommandFaults)
                           : std::span<const char* const>(kProcessFaults);
}

Fault draw(const SoakOptions& options, Soak& soak, int number) {
  std::seed_seq seed{options.seed, static_cast<std::uint64_t>(number)};
  Fault fault;
  fault.number = number;
  fault.kind = kind_of(options, kinds_of(options), number);
  fault.random.seed(seed);
  fault.rank = Rank(static_cast<std::int32_t>(fault.random() % kSoakRanks));
  fault.recover = fault.random() % 2 == 0;
  if (fault.random() % 4 != 0) {
    fault.delay = soak.instant(fault.random);
  }
  return fault;
}

std::string text_of(const Fault& fault) {
  return fmt::format(
      "{} of rank {}, {}, then {}",
      fault.kind,
      fault.rank.value,
      fault.delay ? fmt::format("{} us into a step", fault.delay->count()) : "between steps",
      fault.recover ? "recover" : "load");
}

// ---- measurements -------------------------------------------------------------------------------

struct Figures {
  int count = 0, unfelt = 0, survived = 0, late = 0;
  std::vector<double> to_fail;
  double to_go_on = 0.0;  ///< s, the longest time

  void add(const Outcome& outcome) {
    ++count;
    unfelt += outcome.unfelt ? 1 : 0;
    survived += outcome.survived ? 1 : 0;
    late += outcome.late ? 1 : 0;
    if (outcome.to_fail) {
      to_fail.push_back(*outcome.to_fail);
    }
    to_go_on = std::max(to_go_on, outcome.to_go_on.value_or(0.0));
  }
};

std::string seconds_text(std::optional<double> seconds) {
  return seconds ? fmt::format("{:.3f} s", *seconds) : "-";
}

void print(const Fault& fault, const Outcome& outcome) {
  fmt::print("{:>4} to fail {:>9}, to continue {:>9}: {}\n",
             fault.number,
             seconds_text(outcome.to_fail),
             seconds_text(outcome.to_go_on),
             text_of(fault));
  std::fflush(stdout);
}

void print(const std::map<std::string, Figures>& figures, Soak& soak, double seconds) {
  fmt::print("{:<12} {:>6} {:>7} {:>9} {:>5} {:>15} {:>14} {:>10}\n",
             "kind",
             "faults",
             "unfelt",
             "survived",
             "late",
             "to fail, median",
             "to fail, worst",
             "to continue");
  for (const auto& [kind, f] : figures) {
    const bool failed = !f.to_fail.empty();
    fmt::print("{:<12} {:>6} {:>7} {:>9} {:>5} {:>15} {:>14} {:>8.3f} s\n",
               kind,
               f.count,
               f.unfelt,
               f.survived,
               f.late,
               failed ? seconds_text(median(f.to_fail)) : "-",
               failed ? seconds_text(std::ranges::max(f.to_fail)) : "-",
               f.to_go_on);
  }
  fmt::print("{} steps bit-equal to the unbroken run, {:.0f} s, {} processors\n",
             soak.training().steps(),
             seconds,
             std::thread::hardware_concurrency());
}

// ---- the program --------------------------------------------------------------------------------

std::string hang_text;  // NOLINT: a signal handler's

void watch(const SoakOptions& options, const Fault& fault) {
  hang_text =
      fmt::format("seed {}, fault {} ({}): hangs\n", options.seed, fault.number, fault.kind);
  std::signal(SIGALRM, [](int) {
    static_cast<void>(!write(STDERR_FILENO, hang_text.data(), hang_text.size()));
    _exit(1);
  });
  alarm(kHangSeconds);
}

/// Makes some quiet steps, now and then saves a file, and causes the fault.
Outcome suffer(Soak& soak, Fault& fault) {
  for (std::uint64_t quiet = fault.random() % 3; quiet > 0; --quiet) {
    soak.training().train_step();
  }
  if (fault.number % 3 == 0) {
    soak.training().save();
  }
  const Outcome outcome = soak.suffer(fault);
  require(outcome.to_go_on.value_or(0.0) <= kGoOnLimit,
          fmt::format("continued only after {}", seconds_text(outcome.to_go_on)));
  return outcome;
}

int run(const SoakOptions& options) {
  const auto begun = Clock::now();
  // Applies to workers: each larger block is requested from the system, and no thread has memory in
  // reserve, so that a lack of memory takes effect.
  setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1);
  setenv("MALLOC_ARENA_MAX", "1", 1);
  const std::unique_ptr<Soak> soak =
      options.hosts ? make_hosts_soak(options) : make_process_soak(options);
  std::map<std::string, Figures> figures;
  for (int number = 0; number < options.faults; ++number) {
    Fault fault = draw(options, *soak, number);
    watch(options, fault);
    try {
      const Outcome outcome = suffer(*soak, fault);
      print(fault, outcome);
      figures[fault.kind].add(outcome);
    } catch (const std::exception& error) {
      fmt::print(stderr,
                 "seed {}, fault {} ({}): {}\n",
                 options.seed,
                 number,
                 text_of(fault),
                 error.what());
      return 1;
    }
  }
  alarm(0);
  print(figures, *soak, seconds_since(begun));
  return 0;
}

/// Trains until it is killed, or forever; on hosts if the environment names some.
[[noreturn]] void run_driver(const SoakOptions& options) {
  alarm(kHangSeconds);
  const Program program = make_wide_program(kSoakRanks);
  SpawnOptions spawn = soak_spawn_options(options);
  const SpawnOptions said = spawn_options_of_environment();
  spawn.hosts = said.hosts;
  spawn.ssh = said.ssh;
  const Cluster cluster = Cluster::spawn(kSoakRanks, spawn);
  Trainer trainer(cluster, program, make_schedule("1f1b", program), course_optimizer());
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

/// Returns null for an option with a value.
bool* flag_of(SoakOptions& options, const std::string& option) {
  return option == "--driver"    ? &options.driver
         : option == "--hosts"   ? &options.hosts
         : option == "--command" ? &options.command
                                 : nullptr;
}

SoakOptions parse(const std::vector<std::string>& words) {
  SoakOptions options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& option = words[i];
    if (bool* const flag = flag_of(options, option)) {
      *flag = true;
      continue;
    }
    const std::string text = ++i < words.size() ? words[i] : "";
    if (option == "--faults") {
      options.faults = number_in<int>(option, text);
    } else if (option == "--seed") {
      options.seed = number_in<std::uint64_t>(option, text);
    } else if (option == "--silence") {
      options.silence = std::chrono::milliseconds(number_in<int>(option, text));
    } else if (option == "--only") {
      options.only = text;
    } else {
      throw std::invalid_argument(
          "expected --hosts, --command, --faults N, --seed S, --silence MS or --only KIND, found "
          "\"" +
          option + '"');
    }
  }
  const auto kinds = kinds_of(options);
  if (!options.only.empty() && std::ranges::find(kinds, options.only) == kinds.end()) {
    throw std::invalid_argument(
        fmt::format("--only expects {}, found \"{}\"", fmt::join(kinds, ", "), options.only));
  }
  return options;
}

}  // namespace
}  // namespace stagecraft::tests

int main(int argc, char** argv) {
  using namespace stagecraft::tests;
  if (stagecraft::is_worker(argc, argv)) {
    return stagecraft::worker_main(argc, argv, stagecraft::types<Exchange>());
  }
  try {
    const SoakOptions options = parse({argv + 1, argv + argc});
    if (options.driver) {
      run_driver(options);
    }
    return options.command ? run_command_soak(options) : run(options);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
