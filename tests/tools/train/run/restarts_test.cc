/// Tests that `stagecraft train --restarts` goes on after the loss of workers, as if they had never
/// been lost (TN-4), and where it does not.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

constexpr std::int64_t kSteps = 60;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Holds what a run has told until its end.
struct Told {
  CommandResult end;
  std::vector<nlohmann::json> steps, evaluations, restarts;
  std::vector<std::int64_t> saved;
  nlohmann::json verify, done, interrupted;
};

Told told_by(RunningCommand& running) {
  Told told{.end = running.wait(std::chrono::seconds(300))};
  CHECK_FALSE(told.end.timed_out);
  std::istringstream lines(told.end.out);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json event = train_event(line);
    const std::string name = event.at("event");
    if (name == "step") {
      told.steps.push_back(event);
    } else if (name == "eval") {
      told.evaluations.push_back(event);
    } else if (name == "restart") {
      told.restarts.push_back(event);
    } else if (name == "verify") {
      told.verify = event;
    } else if (name == "saved") {
      told.saved.push_back(event.at("step"));
    } else if (name == "interrupted") {
      told.interrupted = event;
    } else if (name == "done") {
      told.done = event;
    }
  }
  return told;
}

/// A run whose workers are struck by its test, and the same run unbroken. It is never far ahead of
/// what its test has read, so it is struck in time however slow the test is.
class Struck {
 public:
  Struck(int ranks, const Words& options, const Words& keeping = {})
      : ranks_(ranks),
        options_(with(options,
                      {"--ranks",
                       std::to_string(ranks),
                       "--stages",
                       std::to_string(ranks),
                       "--steps",
                       std::to_string(kSteps)})),
        running_(
            small_train(with(with(options_, keeping),
                             {"--workers", "processes", "--save-weights", weights_, "--json"}))) {
    running_.keep_pace();
  }

  /// Returns once the run has told this event: `"event":"step","step":7,`.
  void wait_for(const std::string& text) { REQUIRE(running_.wait_for_output(text)); }
  void wait_for_step(std::int64_t step) {
    wait_for("\"event\":\"step\",\"step\":" + std::to_string(step) + ",");
  }

  [[nodiscard]] std::vector<pid_t> workers() const {
    std::vector<pid_t> all = workers_of_command();
    REQUIRE(all.size() == static_cast<std::size_t>(ranks_));
    return all;
  }

  /// Kills workers between two instants of the run.
  void kill_at_once(const std::vector<pid_t>& workers) const {
    running_.send_signal(SIGSTOP);
    for (const pid_t worker : workers) {
      REQUIRE(kill(worker, SIGKILL) == 0);
    }
    running_.send_signal(SIGCONT);
  }

  void send(int signal) const { running_.send_signal(signal); }

  Told end() { return told_by(running_); }

  /// Ends the run, which must be equal to the unbroken one.
  Told end_well() {
    Told told = end();
    CAPTURE(told.end.err, told.end.out);
    REQUIRE(told.end.exit_code == 0);
    const TrainOutput unbroken = train_json(with(options_, {"--save-weights", unbroken_}));
    CHECK(told.done.at("weights_sha256") == unbroken.sha256());
    CHECK(read_text_file(weights_) == read_text_file(unbroken_));
    check_steps(told, unbroken);
    return told;
  }

 private:
  /// Each step is told once, in order, with its loss. That of a step whose report was lost with a
  /// worker is not.
  static void check_steps(const Told& told, const TrainOutput& unbroken) {
    std::int64_t last = 0;
    for (const nlohmann::json& step : told.steps) {
      const std::int64_t number = step.at("step");
      CHECK(number > last);
      last = number;
      CHECK(step.at("loss") == unbroken.steps.at(static_cast<std::size_t>(number - 1)).at("loss"));
    }
    CHECK(kSteps - std::ssize(told.steps) <= std::ssize(told.restarts));
  }

  const int ranks_;
  const Words options_;
  const TemporaryFolder folder_;
  const std::string weights_ = folder_.path() + "/struck.safetensors",
                    unbroken_ = folder_.path() + "/unbroken.safetensors";
  RunningCommand running_;
};

Words cells_of(const std::string& row) {
  Words cells;
  std::istringstream text(row);
  for (std::string cell; std::getline(text, cell, ',');) {
    cells.push_back(cell);
  }
  return cells;
}

/// Lets a part of a step pass.
void pass(std::chrono::microseconds span) {
  const auto until = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
}

/// Returns a process that was not there before, once there is one.
pid_t newcomer(const std::vector<pid_t>& before) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  for (;;) {
    REQUIRE(std::chrono::steady_clock::now() < limit);
    for (const pid_t process : workers_of_command()) {
      if (std::ranges::find(before, process) == before.end()) {
        return process;
      }
    }
    std::this_thread::yield();
  }
}

}  // namespace

TEST_CASE("a run goes on from mirrors after a worker was killed at any instant (TN-4)",
          "[tools][restarts][processes]") {
  const unsigned seed = GENERATE(1U, 2U, 3U, 4U);
  std::mt19937 random(seed);
  Struck run(3, {}, {"--restarts", "2"});
  run.wait_for_step(1 + random() % 8);
  const pid_t victim = run.workers().at(random() % 3);
  pass(std::chrono::microseconds(random() % 20'000));
  REQUIRE(kill(victim, SIGKILL) == 0);
  const Told told = run.end_well();
  REQUIRE(told.restarts.size() == 1);
  const nlohmann::json& restart = told.restarts.front();
  CAPTURE(restart.dump());
  CHECK(restart.at("from") == "mirrors");
  CHECK(restart.at("restarts") == 1);
  CHECK(restart.at("most") == 2);
  CHECK(restart.at("workers").size() == 1);
  CHECK(restart.at("workers").at(0).at("process") == victim);
  CHECK(restart.at("workers").at(0).at("new_process") != victim);
  CHECK_THAT(restart.at("failures").at(0).get<std::string>(),
             ContainsSubstring("was killed by signal 9"));
}

TEST_CASE("a run goes on after a worker was stopped, beyond the deadline or in silence",
          "[tools][restarts][processes]") {
  const bool silent = GENERATE(false, true);
  const EnvironmentVariable silence("STAGECRAFT_SILENCE_SECONDS", silent ? "5" : "60");
  Struck run(2, {}, {"--restarts", "1", "--step-deadline", silent ? "60" : "5"});
  run.wait_for_step(3);
  REQUIRE(kill(run.workers().front(), SIGSTOP) == 0);
  const Told told = run.end_well();
  REQUIRE(told.restarts.size() == 1);
  CHECK_THAT(told.restarts.front().at("failures").at(0).get<std::string>(),
             ContainsSubstring(silent ? "has been silent" : "was not done within 5000 ms"));
}

TEST_CASE("a rank that is lost with its keeper takes the run to a checkpoint, else to its start",
          "[tools][restarts][processes]") {
  const bool saves = GENERATE(true, false);
  const TemporaryFolder folder;
  Struck run(3,
             {},
             saves ? Words{"--restarts", "3", "--save-dir", folder.path(), "--save-every", "4"}
                   : Words{"--restarts", "3"});
  run.wait_for(saves ? "\"event\":\"saved\",\"step\":8," : "\"event\":\"step\",\"step\":8,");
  const std::vector<pid_t> workers = run.workers();
  run.kill_at_once({workers[0], workers[1]});
  const Told told = run.end_well();
  REQUIRE(told.restarts.size() == 1);
  const nlohmann::json& restart = told.restarts.front();
  CAPTURE(restart.dump());
  CHECK(restart.at("workers").size() == 2);
  CHECK(restart.at("from") == (saves ? "checkpoint" : "start"));
  if (saves) {
    CHECK(restart.at("after_step") >= 8);
  } else {
    CHECK(restart.at("after_step") == 0);
  }
  CHECK(restart.contains("file") == saves);
}

TEST_CASE("a worker that is lost while the run is healed is replaced too, and counts",
          "[tools][restarts][processes]") {
  const bool takes_newcomer = GENERATE(true, false);
  Struck run(3, {}, {"--restarts", "4"});
  run.wait_for_step(3);
  const std::vector<pid_t> workers = run.workers();
  REQUIRE(kill(workers[0], SIGKILL) == 0);
  const pid_t came = newcomer(workers);
  REQUIRE(kill(takes_newcomer ? came : workers[2], SIGKILL) == 0);
  const Told told = run.end_well();
  REQUIRE_FALSE(told.restarts.empty());
  CAPTURE(told.restarts.front().dump());
  // A newcomer that has not joined yet is started again within the same restart (RR-2).
  const std::int64_t restarts = told.restarts.back().at("restarts");
  CHECK((restarts == 2 || (takes_newcomer && restarts == 1)));
  std::size_t failures = 0;
  for (const nlohmann::json& restart : told.restarts) {
    failures += restart.at("failures").size();
    std::set<int> ranks;
    for (const nlohmann::json& worker : restart.at("workers")) {
      CHECK(ranks.insert(worker.at("rank").get<int>()).second);  // each once
    }
  }
  CHECK(failures == static_cast<std::size_t>(restarts));
}

TEST_CASE("a loss after the last restart ends the run, which says how to continue",
          "[tools][restarts][processes]") {
  const TemporaryFolder folder;
  Struck run(2, {}, {"--restarts", "1", "--save-dir", folder.path(), "--save-every", "2"});
  run.wait_for_step(3);
  kill(run.workers().front(), SIGKILL);
  run.wait_for("\"event\":\"restart\"");
  kill(run.workers().back(), SIGKILL);
  const Told told = run.end();
  CHECK(told.end.exit_code == 1);
  CHECK_THAT(told.end.err,
             ContainsSubstring("was killed by signal 9") &&
                 ContainsSubstring("the restart of --restarts 1 is used up") &&
                 ContainsSubstring("start the run again with --resume " + folder.path()));
}

TEST_CASE("a batch that its rank cannot hold ends the run at the second try, and names the task",
          "[tools][restarts][processes]") {
  const CommandResult result = run_train({"--ranks",
                                          "2",
                                          "--stages",
                                          "2",
                                          "--workers",
                                          "processes",
                                          "--restarts",
                                          "5",
                                          "--memory-limit",
                                          "8K"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(
      result.out,
      ContainsSubstring("restart 1 of 5: step 1 failed") && !ContainsSubstring("restart 2 of 5"));
  CHECK_THAT(result.err, ContainsSubstring("of step 1 has failed twice"));
}

TEST_CASE("a signal ends a run while it repeats steps, and no older step is saved",
          "[tools][restarts][processes]") {
  const bool saves = GENERATE(true, false);
  const TemporaryFolder folder;
  Struck run(2,
             {},
             saves ? Words{"--restarts", "2", "--save-dir", folder.path(), "--save-every", "6"}
                   : Words{"--restarts", "2", "--mirror", "no"});
  run.wait_for_step(10);
  const std::vector<pid_t> workers = run.workers();
  run.kill_at_once(workers);
  const pid_t came = newcomer(workers);
  kill(came, SIGSTOP);  // the run does not go on before it has the signal
  run.send(SIGTERM);
  kill(came, SIGCONT);
  const Told told = run.end();
  CAPTURE(told.end.err, told.end.out);
  CHECK(told.end.exit_code == 128 + SIGTERM);
  REQUIRE(told.restarts.size() == 1);
  const std::int64_t after = told.restarts.front().at("after_step");
  CHECK(told.interrupted.at("step") == after);
  CHECK(told.steps.back().at("step") >= after);
  CHECK(told.done.at("steps") == after);
  CHECK(told.done.contains("loss") == (told.steps.back().at("step") == after));
  std::int64_t saved = 0;
  for (const std::int64_t step : told.saved) {
    CHECK(step > saved);
    saved = step;
  }
}

TEST_CASE("a run without mirrors goes back to its newest checkpoint",
          "[tools][restarts][processes]") {
  const TemporaryFolder folder;
  Struck run(
      2,
      {},
      {"--restarts", "1", "--mirror", "no", "--save-dir", folder.path(), "--save-every", "5"});
  run.wait_for("\"event\":\"saved\",\"step\":10,");
  kill(run.workers().front(), SIGKILL);
  const Told told = run.end_well();
  REQUIRE(told.restarts.size() == 1);
  CHECK(told.restarts.front().at("from") == "checkpoint");
}

TEST_CASE("rates, scales, counts and evaluations of a healed run are those of an unbroken one",
          "[tools][restarts][processes]") {
  const TemporaryFolder folder;
  const Words options{"--model",
                      "moe",
                      "--precision",
                      "fp16",
                      "--eval-every",
                      "3",
                      "--lr-schedule",
                      "plateau",
                      "--lr-patience",
                      "1",
                      "--lr-factor",
                      "0.5",
                      "--accumulate",
                      "2",
                      "--verify"};
  const std::string mirror = GENERATE(as<std::string>{}, "yes", "no");
  Struck run(2, options, {"--restarts", "3", "--mirror", mirror, "--metrics", folder.path()});
  run.wait_for("\"event\":\"eval\",\"step\":9,");
  kill(run.workers().front(), SIGKILL);
  run.wait_for("\"event\":\"restart\"");
  run.wait_for_step(15);
  kill(run.workers().back(), SIGKILL);
  const Told told = run.end_well();
  CHECK(told.restarts.size() == 2);
  CHECK(told.verify.at("bit_equal") == true);
  const TrainOutput unbroken = train_json(
      with(options, {"--ranks", "2", "--stages", "2", "--steps", std::to_string(kSteps)}));
  for (const nlohmann::json& step : told.steps) {
    const nlohmann::json& expected = unbroken.steps.at(step.at("step").get<std::size_t>() - 1);
    for (const char* field : {"loss", "learning_rate", "gradient_norm", "counts", "loss_scale"}) {
      CHECK(step.at(field) == expected.at(field));
    }
  }
  std::vector<nlohmann::json> evaluations;
  std::ranges::copy_if(unbroken.others, std::back_inserter(evaluations), [](const auto& event) {
    return event.at("event") == "eval";
  });
  CHECK(told.evaluations == evaluations);
  // Each step has one row; the first new one after a restart tells of it.
  std::istringstream rows(read_text_file(folder.path() + "/metrics.csv"));
  std::string row;
  std::getline(rows, row);
  CHECK_THAT(row, ContainsSubstring("restarts,repeated_steps,healing_seconds"));
  std::int64_t number = 0, restarts = 0;
  const Words names = cells_of(row);
  const auto column = std::ranges::find(names, "restarts") - names.begin();
  while (std::getline(rows, row)) {
    CHECK(row.starts_with(std::to_string(++number) + ","));
    restarts += std::stoll(cells_of(row).at(static_cast<std::size_t>(column)));
  }
  CHECK(number == kSteps);
  CHECK(restarts == told.restarts.back().at("restarts"));
}

TEST_CASE("restarts are for workers that can be replaced", "[tools][restarts][bad-input]") {
  const auto refused = [](const Words& words) {
    const CommandResult result = run_train(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK_THAT(refused({"--restarts", "2"}),
             ContainsSubstring("--restarts expects --workers processes or joining, found threads"));
  for (const Words& option : {Words{"--mirror", "yes"}, Words{"--restart-window", "5"}}) {
    CHECK_THAT(refused(with(option, {"--workers", "processes"})),
               ContainsSubstring(option.front() + " expects --restarts N"));
  }
  CHECK_THAT(refused({"--restarts", "1", "--workers", "processes", "--step-by-step"}),
             ContainsSubstring("found --step-by-step") && ContainsSubstring("leave one"));
  CHECK_THAT(refused({"--restarts", "-1", "--workers", "processes"}),
             ContainsSubstring("--restarts expects"));
}

}  // namespace stagecraft::tests
