#include "stagecraft/tests/soak/command_soak.h"

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/median.h"
#include "stagecraft/base/split.h"
#include "stagecraft/tests/faults/process_view.h"
#include "stagecraft/tests/faults/violation.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

using std::chrono::microseconds;
using Words = std::vector<std::string>;

constexpr std::int64_t kSteps = 40;
constexpr unsigned kFaultSeconds = 240;
/// The least that the command takes.
constexpr std::chrono::milliseconds kLeastSilence{2000};

/// RunKind is a kind of runs. `training` changes the bits of a run, `healing` how it is healed.
struct RunKind {
  const char* name;
  const char* training;
  const char* healing;
};

constexpr std::array kRunKinds{
    RunKind{"mirrors", "--ranks 3 --stages 3", ""},
    RunKind{"checkpoints", "--ranks 2 --stages 2", "--mirror no"},
    RunKind{"copies", "--ranks 4 --stages 2 --dp 2", "--mirror no"},
    RunKind{"shares", "--ranks 4 --stages 2 --dp 2 --zero 1", ""},
    RunKind{"plateau",
            "--ranks 2 --stages 2 --model moe --experts 2 --precision fp16 --accumulate 2 "
            "--eval-every 7 --lr-schedule plateau --lr-patience 1",
            ""},
};

void add_words(const std::string& text, Words& words) {
  std::istringstream all(text);
  for (std::string word; all >> word;) {
    words.push_back(word);
  }
}

Words train_words(const RunKind& kind) {
  Words words{STAGECRAFT_COMMAND, "train", "--steps", std::to_string(kSteps)};
  add_words("--layers 4 --dim 32 --heads 2 --ffn 48 --seq 16", words);
  add_words("--microbatch-size 2 --microbatches 4", words);
  add_words(kind.training, words);
  return words;
}

/// Holds what a run has computed: its weights, and by step the cells of its metrics that do not
/// depend on the machine. Those of a step whose results were lost are empty.
struct Computed {
  std::string weights;
  std::map<std::int64_t, std::map<std::string, std::string>> steps;
};

/// A row of the last step may be followed by one for what happened after it.
Computed read_computed(const std::string& weights, const std::string& metrics) {
  Computed computed{.weights = read_text_file(weights), .steps = {}};
  std::istringstream rows(read_text_file(metrics + "/metrics.csv"));
  std::string header, row;
  std::getline(rows, header);
  const auto names = split(header, ',');
  std::int64_t last = 0;
  while (std::getline(rows, row)) {
    const auto cells = split(row, ',');
    const std::int64_t step = std::stoll(row);
    if (step == last && step == kSteps) {
      continue;
    }
    require(step == last + 1, fmt::format("a row of step {} follows that of step {}", step, last));
    last = step;
    for (const char* name : {"loss", "gradient_norm", "learning_rate", "loss_scale", "eval_loss"}) {
      const auto column = static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
      if (column < cells.size()) {
        computed.steps[step][name] = cells[column];
      }
    }
  }
  require(last == kSteps, fmt::format("the metrics end with step {}", last));
  return computed;
}

/// Returns what the run computes if nothing strikes it.
Computed unbroken(const RunKind& kind) {
  const TemporaryFolder folder;
  const std::string weights = folder.path() + "/weights.safetensors",
                    metrics = folder.path() + "/metrics";
  Words words = train_words(kind);
  words.insert(words.end(), {"--save-weights", weights, "--metrics", metrics});
  const CommandResult result = run_command(words);
  require(result.exit_code == 0, "the unbroken run failed: " + result.err);
  return read_computed(weights, metrics);
}

/// CommandRun is one run, with all starts of its command.
class CommandRun {
 public:
  CommandRun(const RunKind& kind, bool by_deadline, std::chrono::milliseconds silence)
      : words_(train_words(kind)) {
    // A stopped worker is found by its silence, or by the deadline of the step.
    const std::string seconds = fmt::format("{}", static_cast<double>(silence.count()) / 1e3);
    setenv("STAGECRAFT_SILENCE_SECONDS", by_deadline ? "10" : seconds.c_str(), 1);
    // The last step is one of --save-every: a run may be killed between its checkpoint and its
    // weights.
    add_words("--workers processes --restarts 1000 --restart-window 0.001 --save-every 4 --json",
              words_);
    words_.insert(words_.end(),
                  {"--resume", folder_.path() + "/checkpoints", "--metrics", metrics_});
    words_.insert(words_.end(), {"--save-weights", weights_});
    add_words(by_deadline ? "--step-deadline 4" : "--step-deadline 60", words_);
    add_words(kind.healing, words_);
  }

  void start() {
    command_ = std::make_unique<RunningCommand>(words_);
    command_->keep_pace();
  }

  /// Reads until the run has told a step as late as this one. Returns false if it has ended.
  [[nodiscard]] bool reach(std::int64_t step) {
    while (told_ < step) {
      const std::optional<std::string> line = command_->next_line();
      if (!line) {
        return false;
      }
      const nlohmann::json event = nlohmann::json::parse(*line);
      if (event.at("event") == "step") {
        told_ = event.at("step");
        step_seconds_ = event.at("seconds");
      } else if (event.at("event") == "restart") {
        healing_seconds_.push_back(event.at("seconds"));
      }
    }
    return true;
  }

  [[nodiscard]] std::int64_t told() const { return told_; }
  [[nodiscard]] double step_seconds() const { return step_seconds_; }
  [[nodiscard]] const std::vector<double>& healing_seconds() const { return healing_seconds_; }

  /// Returns the workers that run.
  [[nodiscard]] std::vector<pid_t> workers() const {
    std::vector<pid_t> all = command_->children();
    std::erase_if(all, [](pid_t process) { return !is_running(process); });
    return all;
  }

  /// Returns a worker that was not there before, soon after there is one; none if the run does not
  /// need it.
  [[nodiscard]] std::optional<pid_t> newcomer(const std::vector<pid_t>& before) const {
    std::optional<pid_t> came;
    static_cast<void>(eventually(
        [&] {
          for (const pid_t process : workers()) {
            if (std::ranges::find(before, process) == before.end()) {
              came = process;
            }
          }
          return came.has_value();
        },
        std::chrono::seconds(10)));
    return came;
  }

  /// Kills the command, whose workers must end with it, and starts it again.
  void kill_command() {
    command_->send_signal(SIGKILL);
    const CommandResult result = command_->wait();
    require(!result.timed_out, "workers outlive their driver");
    require(result.exit_code == 128 + SIGKILL || result.exit_code == 0,
            "the command has failed: " + result.err);
    start();
  }

  /// Lets the run end. `expected`: what it must have computed. Returns for how many steps the
  /// results were lost with a worker, after `strikes` of them.
  int end(const Computed& expected, int strikes) {
    static_cast<void>(reach(kSteps + 1));
    const CommandResult result = command_->wait();
    require(!result.timed_out, "the run does not end: " + tail(result.out) + tail(result.err));
    require(result.exit_code == 0,
            fmt::format("the run ended with exit status {}: {}{}",
                        result.exit_code,
                        tail(result.out),
                        tail(result.err)));
    const Computed found = read_computed(weights_, metrics_);
    require(found.weights == expected.weights, "the weights are not those of the unbroken run");
    int lost = 0;
    for (const auto& [step, cells] : found.steps) {
      if (cells.at("loss").empty()) {
        ++lost;
      } else {
        require(cells == expected.steps.at(step),
                fmt::format("the metrics of step {} are not those of the unbroken run", step));
      }
    }
    require(lost <= strikes,
            fmt::format("the results of {} steps were lost in {} strikes", lost, strikes));
    return lost;
  }

 private:
  static std::string tail(const std::string& text) {
    constexpr std::size_t kMost = 3000;
    return text.substr(text.size() - std::min(text.size(), kMost));
  }

  const TemporaryFolder folder_;
  const std::string weights_ = folder_.path() + "/weights.safetensors",
                    metrics_ = folder_.path() + "/metrics";
  Words words_;
  std::unique_ptr<RunningCommand> command_;
  std::int64_t told_ = 0;
  double step_seconds_ = 0.01;
  std::vector<double> healing_seconds_;
};

/// A fault of a run. Seed and number determine all but the instant of the machine that it meets.
struct CommandFault {
  std::string kind;
  std::mt19937_64 random;

  CommandFault(const SoakOptions& options, int number)
      : kind(kind_of(options, kCommandFaults, number)) {
    std::seed_seq seed{options.seed, static_cast<std::uint64_t>(number)};
    random.seed(seed);
  }

  [[nodiscard]] bool one_of(unsigned parts) { return random() % parts == 0; }
  /// Lets a drawn part of this time pass.
  void pass(double seconds) {
    std::uniform_real_distribution<double> part(0.0, seconds);
    std::this_thread::sleep_for(microseconds(static_cast<std::int64_t>(1e6 * part(random))));
  }
  /// Returns one of the workers, which it takes out.
  pid_t take(std::vector<pid_t>& workers) {
    const auto at = workers.begin() + static_cast<std::ptrdiff_t>(random() % workers.size());
    const pid_t taken = *at;
    workers.erase(at);
    return taken;
  }
};

constexpr int kMostStrikes = 2;  // of one fault
constexpr double kStartSeconds = 1.5, kHealingSeconds = 0.6;

void starve(CommandFault& fault, pid_t victim) {
  constexpr std::uint64_t kAround = 1U << 20U;
  limit_address_space(victim, address_space(victim) + fault.random() % (2 * kAround) - kAround);
}

/// Strikes the run. Returns false if there was nothing left to strike.
bool strike(CommandFault& fault, CommandRun& run) {
  if (!fault.one_of(4)) {
    fault.pass(1.2 * run.step_seconds());
  }
  const std::vector<pid_t> all = run.workers();
  std::vector<pid_t> left = all;
  if (left.size() < 2) {
    return false;
  }
  if (fault.kind == "driver" || fault.kind == "start") {
    run.kill_command();
    if (fault.kind == "start") {
      fault.pass(kStartSeconds);
      run.kill_command();
    }
    return true;
  }
  const pid_t victim = fault.take(left);
  if (fault.kind == "stop") {
    ::kill(victim, SIGSTOP);
  } else if (fault.kind == "memory") {
    starve(fault, victim);
  } else {
    ::kill(victim, SIGKILL);
  }
  if (fault.kind == "several") {
    ::kill(fault.take(left), SIGKILL);
  } else if (fault.kind == "healing" || fault.kind == "driver-healing") {
    const std::optional<pid_t> came = run.newcomer(all);
    const bool at_once = fault.one_of(3);
    if (!at_once) {
      fault.pass(kHealingSeconds);
    }
    if (fault.kind == "driver-healing") {
      run.kill_command();
    } else {
      // The newcomer at once or never: it must not fail twice in one task (HG-2). It is not
      // stopped: one that never joins ends the run (RR-2).
      const bool takes_newcomer = at_once && came;
      ::kill(takes_newcomer ? *came : fault.take(left),
             !takes_newcomer && fault.one_of(3) ? SIGSTOP : SIGKILL);
    }
  }
  return true;
}

std::string hanging;  // NOLINT: a signal handler's

void watch_for_hang(const std::string& text) {
  hanging = text + "hangs\n";
  std::signal(SIGALRM, [](int) {
    static_cast<void>(!write(STDERR_FILENO, hanging.data(), hanging.size()));
    _exit(1);
  });
  alarm(kFaultSeconds);
}

/// CommandSoak makes one run after the other until all faults have struck.
class CommandSoak {
 public:
  explicit CommandSoak(const SoakOptions& options) : options_(options) {}

  void run() {
    for (int runs = 0; number_ < options_.faults; ++runs) {
      const RunKind& kind = kRunKinds[static_cast<std::size_t>(runs) % kRunKinds.size()];
      where_ =
          fmt::format("seed {}, fault {}, run {} ({}): ", options_.seed, number_, runs, kind.name);
      if (!expected_.contains(kind.name)) {
        expected_.emplace(kind.name, unbroken(kind));
      }
      strike_run(kind, runs);
      ++runs_;
    }
    alarm(0);
  }

  void print(double seconds) const {
    for (const auto& [kind, count] : faults_) {
      fmt::print("{:<16} {:>5} faults\n", kind, count);
    }
    fmt::print(
        "{} faults, healed {} times in {:.2f} s at the median and {:.2f} s at worst, results of {} "
        "steps lost; {} runs bit-equal to the unbroken ones, {:.0f} s, {} processors\n",
        number_,
        healing_seconds_.size(),
        healing_seconds_.empty() ? 0.0 : median(healing_seconds_),
        healing_seconds_.empty() ? 0.0 : std::ranges::max(healing_seconds_),
        lost_,
        runs_,
        seconds,
        std::thread::hardware_concurrency());
  }

  /// Returns the instant of the last fault, in words.
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  void strike_run(const RunKind& kind, int index) {
    CommandRun run(kind,
                   /*by_deadline=*/index % 2 == 1,
                   std::max(options_.silence, kLeastSilence));
    run.start();
    bool is_over = false;
    const int before = number_;
    while (!is_over && number_ < options_.faults) {
      CommandFault fault(options_, number_);
      // The step that failed has been made since: no rank fails twice in one task (HG-2).
      std::int64_t due = run.told() + 2 + static_cast<std::int64_t>(fault.random() % 4);
      if (fault.kind == "end" || due > kSteps) {
        due = kSteps;
        is_over = true;
      }
      where_ = fmt::format("seed {}, fault {} ({} in a run with {}, after step {}): ",
                           options_.seed,
                           number_,
                           fault.kind,
                           kind.name,
                           due);
      watch_for_hang(where_);
      if (!run.reach(due) || !strike(fault, run)) {
        break;  // the next run gets this fault
      }
      fmt::print("{:>4} {:<16} after step {:>3}, {}\n", number_, fault.kind, due, kind.name);
      std::fflush(stdout);
      ++faults_[fault.kind];
      ++number_;
    }
    lost_ += run.end(expected_.at(kind.name), kMostStrikes * (number_ - before));
    healing_seconds_.insert(
        healing_seconds_.end(), run.healing_seconds().begin(), run.healing_seconds().end());
  }

  const SoakOptions options_;
  int number_ = 0, runs_ = 0, lost_ = 0;
  std::map<std::string, Computed> expected_;
  std::map<std::string, int> faults_;
  std::vector<double> healing_seconds_;
  std::string where_;
};

}  // namespace

int run_command_soak(const SoakOptions& options) {
  const auto begun = std::chrono::steady_clock::now();
  // As for the soak of processes: so that a lack of memory takes effect.
  setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1);
  setenv("MALLOC_ARENA_MAX", "1", 1);
  CommandSoak soak(options);
  try {
    soak.run();
  } catch (const std::exception& error) {
    std::cerr << soak.where() << error.what() << '\n';
    return 1;
  }
  soak.print(seconds_since(begun));
  return 0;
}

}  // namespace stagecraft::tests
