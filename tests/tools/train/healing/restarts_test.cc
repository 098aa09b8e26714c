/// Tests that `stagecraft train --restarts` goes on after the loss of workers, as if they had never
/// been lost (TN-4), and where it does not.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "stagecraft/actors/launch/worker/worker_process.h"
#include "stagecraft/base/split.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/support/tcp_relay.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

constexpr std::int64_t kSteps = 30;

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
  /// Returns the link of a run with --serve.
  [[nodiscard]] std::string link() {
    nlohmann::json event;
    do {
      event = train_event(running_.next_line().value());
    } while (event.at("event") != "watch");
    return event.at("link");
  }

  void wait_for_step(std::int64_t step) {
    wait_for("\"event\":\"step\",\"step\":" + std::to_string(step) + ",");
  }

  [[nodiscard]] std::vector<pid_t> workers() const {
    std::vector<pid_t> all = running_.children();
    REQUIRE(all.size() == static_cast<std::size_t>(ranks_));
    return all;
  }

  /// Returns a worker that was not there before, once there is one.
  [[nodiscard]] pid_t newcomer(const std::vector<pid_t>& before) const {
    pid_t came = 0;
    REQUIRE(eventually([&] {
      const std::vector<pid_t> now = running_.children();
      const auto found = std::ranges::find_if(
          now, [&](pid_t process) { return std::ranges::find(before, process) == before.end(); });
      came = found == now.end() ? 0 : *found;
      return came != 0;
    }));
    return came;
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

/// A run of two workers that join by themselves. A relay carries what the driver and the first one
/// tell each other.
class Relayed {
 public:
  /// `heartbeat`: between signs of life of the workers.
  explicit Relayed(const Words& options,
                   std::chrono::milliseconds heartbeat = std::chrono::seconds(1))
      : heartbeat_(heartbeat),
        driver_(small_train(with(options,
                                 {"--workers",
                                  "joining",
                                  "--credentials",
                                  made_credentials(folder_.path() + "/credentials"),
                                  "--json"}))),
        relay_(port_of_driver()),
        first_(worker(0, relay_.port())),
        second_(worker(1, port_)) {}

  /// Returns the next event of this name.
  nlohmann::json next(const std::string& name) {
    for (;;) {
      const std::optional<std::string> line = driver_.next_line();
      REQUIRE(line);
      nlohmann::json event = noted(*line);
      if (event.at("event") == name) {
        return event;
      }
    }
  }

  /// Returns the last step that was told so far.
  [[nodiscard]] std::int64_t told_step() const { return told_step_; }

  /// Keeps what the first worker tells the driver from now on. Returns once it has told something:
  /// if it sends no sign of life, that is the end of a step.
  void hold_report() {
    relay_.hold_callers();
    REQUIRE(eventually([this] {
      if (relay_.is_holding_bytes()) {
        return true;
      }
      if (const auto line = driver_.next_line(std::chrono::seconds(1))) {  // it may wait for us
        noted(*line);
      }
      return false;
    }));
  }

  /// Kills the first worker, with all that was held.
  void kill_first() {
    first_->send_signal(SIGKILL);
    (void)first_->wait();
    relay_.cut();
  }
  /// Does so, and starts another one.
  void lose_first() {
    kill_first();
    first_ = worker(0, relay_.port());
  }

  /// Stops the first worker until the driver waits for another one, which starts then. Returns the
  /// exit status of the stopped one.
  int stop_first_until_missed() {
    const std::size_t before = driver_.error().size();  // the driver may have waited at its start
    first_->send_signal(SIGSTOP);
    REQUIRE(eventually([&] {
      if (const auto line = driver_.next_line(std::chrono::seconds(1))) {
        noted(*line);
      }
      return driver_.error().find("missing rank 0", before) != std::string::npos;
    }));
    first_->send_signal(SIGCONT);
    const int status = first_->wait().exit_code;
    first_ = worker(0, relay_.port());
    return status;
  }

  Told end() { return told_by(driver_); }

 private:
  nlohmann::json noted(const std::string& line) {
    nlohmann::json event = train_event(line);
    if (event.at("event") == "step") {
      told_step_ = event.at("step");
    }
    return event;
  }

  static std::string made_credentials(const std::string& place) {
    REQUIRE(run_command({STAGECRAFT_COMMAND, "credentials", "make", place, "--workers", "2"})
                .exit_code == 0);
    return place;
  }

  [[nodiscard]] std::unique_ptr<RunningCommand> worker(int number, std::uint16_t port) const {
    return std::make_unique<RunningCommand>(
        Words{STAGECRAFT_COMMAND,
              "worker",
              "--join",
              "127.0.0.1:" + std::to_string(port),
              "--credentials",
              folder_.path() + "/credentials/worker-" + std::to_string(number),
              "--heartbeat",
              std::to_string(heartbeat_.count()),
              "--silence",
              "60000"});
  }

  std::uint16_t port_of_driver() {
    driver_.keep_pace();
    const std::string begin = "workers join at 127.0.0.1:";
    REQUIRE(driver_.wait_for_error(begin));
    REQUIRE(driver_.wait_for_error("; tensors"));
    const std::string& told = driver_.error();
    port_ = static_cast<std::uint16_t>(std::stoi(told.substr(told.find(begin) + begin.size())));
    return port_;
  }

  const TemporaryFolder folder_;
  const std::chrono::milliseconds heartbeat_;
  RunningCommand driver_;
  std::uint16_t port_ = 0;
  std::int64_t told_step_ = 0;
  TcpRelay relay_;
  std::unique_ptr<RunningCommand> first_, second_;
};

/// Lets a part of a step pass.
void pass(std::chrono::microseconds span) {
  const auto until = std::chrono::steady_clock::now() + span;
  while (std::chrono::steady_clock::now() < until) {
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
  const pid_t came = run.newcomer(workers);
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

TEST_CASE("a worker that does not answer while the run is healed is replaced too",
          "[tools][restarts][processes]") {
  const EnvironmentVariable silence("STAGECRAFT_SILENCE_SECONDS", "60");
  const EnvironmentVariable patience("STAGECRAFT_JOIN_SECONDS", "10");
  Struck run(3, {}, {"--restarts", "4"});
  run.wait_for_step(3);
  const std::vector<pid_t> workers = run.workers();
  REQUIRE(kill(workers[0], SIGKILL) == 0);
  (void)run.newcomer(workers);
  REQUIRE(kill(workers[2], SIGSTOP) == 0);
  const Told told = run.end_well();
  REQUIRE_FALSE(told.restarts.empty());
  std::set<std::int64_t> replaced;
  for (const nlohmann::json& restart : told.restarts) {
    for (const nlohmann::json& worker : restart.at("workers")) {
      replaced.insert(worker.at("process").get<std::int64_t>());
    }
  }
  CHECK(replaced == std::set<std::int64_t>{workers[0], workers[2]});
}

TEST_CASE("a step whose report is lost with its worker counts, and is not made again",
          "[tools][restarts][processes]") {
  const EnvironmentVariable silence("STAGECRAFT_SILENCE_SECONDS", "60");
  const EnvironmentVariable interface("STAGECRAFT_INTERFACE", "lo");
  const TemporaryFolder folder;
  const Words options{"--ranks", "2", "--stages", "2", "--steps", "60", "--verify"};
  Relayed run(
      with(options, {"--restarts", "9", "--restart-window", "0.001", "--metrics", folder.path()}),
      std::chrono::seconds(30));
  std::int64_t lost = 0;
  while (lost == 0) {
    (void)run.next("step");
    // A step counts if the second rank, too, has made it: it has the votes and the copy a little
    // later. Otherwise a later step is tried.
    run.hold_report();
    run.lose_first();
    const std::int64_t after = run.next("restart").at("after_step");
    lost = after > run.told_step() ? after : 0;
  }
  const Told told = run.end();
  CAPTURE(told.end.err, told.end.out);
  CHECK(told.end.exit_code == 0);
  CHECK(told.verify.at("bit_equal") == true);
  for (const nlohmann::json& step : told.steps) {
    CHECK(step.at("step") != lost);
  }
  const TrainOutput unbroken = train_json(options);
  CHECK(told.done.at("weights_sha256") == unbroken.sha256());
  std::istringstream rows(read_text_file(folder.path() + "/metrics.csv"));
  std::string row;
  std::getline(rows, row);
  for (std::int64_t number = 1; std::getline(rows, row); ++number) {
    CHECK(row.starts_with(std::to_string(number) + ","));
    CHECK(split(row, ',').at(1).empty() == (number == lost));
  }
}

TEST_CASE("a new worker that computes with other code is told, and the run goes on",
          "[tools][restarts][processes]") {
  const EnvironmentVariable interface("STAGECRAFT_INTERFACE", "lo");
  Relayed run({"--ranks", "2", "--stages", "2", "--steps", "30", "--restarts", "1"});
  (void)run.next("step");
  {
    const EnvironmentVariable plain("ATEN_CPU_CAPABILITY", "default");
    run.lose_first();
  }
  (void)run.next("restart");
  const std::string why = run.next("other_processors").at("why");
  CHECK_THAT(why,
             ContainsSubstring("before the restart, and compute with") &&
                 ContainsSubstring("may get other bits"));
  const Told told = run.end();
  CAPTURE(told.end.err);
  CHECK(told.end.exit_code == 0);
  CHECK(told.done.at("steps") == 30);
}

TEST_CASE(
    "a worker that joined by itself and is ended by its driver says that it is to be replaced",
    "[tools][restarts][processes]") {
  const EnvironmentVariable silence("STAGECRAFT_SILENCE_SECONDS", "60");
  const EnvironmentVariable interface("STAGECRAFT_INTERFACE", "lo");
  const Words options{"--ranks", "2", "--stages", "2", "--steps", "30", "--verify"};
  Relayed run(with(options, {"--restarts", "1", "--step-deadline", "5"}));
  (void)run.next("step");
  CHECK(run.stop_first_until_missed() == kToBeReplaced);
  const Told told = run.end();
  CAPTURE(told.end.err);
  CHECK(told.end.exit_code == 0);
  REQUIRE(told.restarts.size() == 1);
  CHECK(told.verify.at("bit_equal") == true);
}

TEST_CASE("a worker that does not come in its time ends the run, which tells of the loss too",
          "[tools][restarts][processes]") {
  const EnvironmentVariable interface("STAGECRAFT_INTERFACE", "lo");
  const EnvironmentVariable patience("STAGECRAFT_JOIN_SECONDS", "10");
  Relayed run({"--ranks", "2", "--stages", "2", "--steps", "1000000", "--restarts", "3"});
  (void)run.next("step");
  run.kill_first();
  const Told told = run.end();
  CHECK(told.end.exit_code == 1);
  CHECK(told.restarts.empty());
  CHECK_THAT(told.end.err,
             ContainsSubstring("not all workers have joined within 10000 ms") &&
                 ContainsSubstring("because step") && ContainsSubstring("rank 0 is lost"));
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
  const pid_t came = run.newcomer(workers);
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
  std::string header, row;
  std::getline(rows, header);
  CHECK_THAT(header, ContainsSubstring("restarts,repeated_steps,healing_seconds"));
  std::int64_t number = 0, restarts = 0;
  const auto names = split(header, ',');
  const auto column = std::ranges::find(names, "restarts") - names.begin();
  while (std::getline(rows, row)) {
    CHECK(row.starts_with(std::to_string(++number) + ","));
    restarts += std::stoll(std::string(split(row, ',').at(static_cast<std::size_t>(column))));
  }
  CHECK(number == kSteps);
  CHECK(restarts == told.restarts.back().at("restarts"));
}

TEST_CASE("those who watch a run see how often it was healed, and what that cost",
          "[tools][restarts][watch][processes]") {
  Struck run(2, {}, {"--restarts", "2", "--mirror", "no", "--serve"});
  run.wait_for_step(3);
  REQUIRE(kill(run.workers().front(), SIGKILL) == 0);
  run.wait_for("\"event\":\"restart\"");
  run.wait_for_step(12);  // all repeated ones were made before
  const CommandResult status = run_command({STAGECRAFT_COMMAND, "status", "--json", run.link()});
  CAPTURE(status.err);
  REQUIRE(status.exit_code == 0);
  const Told told = run.end_well();
  REQUIRE(told.restarts.size() == 1);
  const nlohmann::json state = nlohmann::json::parse(status.out);
  CHECK(state.at("restarts") == 1);
  CHECK(state.at("repeated_steps") == told.restarts.front().at("repeated_steps"));
  CHECK(state.at("repeated_steps") >= 3);
  CHECK(state.at("healing_seconds") == told.restarts.front().at("seconds"));
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
