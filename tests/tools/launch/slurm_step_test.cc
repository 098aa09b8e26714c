/// Tests how `stagecraft launch` uses the variables that srun sets, without Slurm;
/// tests/hosts/slurm_test.cc uses a real one.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/support/slurm_variables.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns words that start a command as a process of the step.
std::vector<std::string> words_in(const Variables& variables,
                                  const std::vector<std::string>& command) {
  std::vector<std::string> words{"env", "--unset=SLURM_RESTART_COUNT"};
  for (const auto& [name, value] : variables) {
    words.push_back(name + "=" + value);
  }
  words.emplace_back(STAGECRAFT_COMMAND);
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::vector<std::string> launch_words(const Variables& variables,
                                      const std::vector<std::string>& train) {
  std::vector<std::string> command{"launch", "--", "train"};
  command.insert(command.end(), train.begin(), train.end());
  return words_in(variables, command);
}

/// Runs a step of two processes, and strikes the worker of the second after its third step.
struct StruckStep {
  TemporaryFolder folder;
  RunningCommand driver, worker;

  explicit StruckStep(const std::vector<std::string>& train)
      : driver(words(0, train)), worker(words(1, train)) {
    driver.keep_pace();
  }

  void strike(int signal) const {
    const std::vector<pid_t> workers = worker.children();
    REQUIRE(workers.size() == 1);
    REQUIRE(kill(workers.front(), signal) == 0);
  }

  [[nodiscard]] std::vector<std::string> words(int process,
                                               const std::vector<std::string>& train) const {
    std::vector<std::string> command{"launch", "--silence-seconds", "3", "--", "train"};
    command.insert(
        command.end(),
        {"--layers", "2", "--dim", "16", "--ffn", "32", "--seq", "16", "--steps", "60", "--json"});
    command.insert(command.end(), train.begin(), train.end());
    return words_in(of_process(process, folder.path()), command);
  }
};

}  // namespace

TEST_CASE("the shell of a job launches no step, though it has the number of one",
          "[tools][slurm]") {
  for (const char* number : {"4294967290", "4294967291"}) {  // salloc's step, and a batch script's
    Variables variables = of_process(0, "/");
    variables["SLURM_STEP_ID"] = number;
    variables["SLURM_STEP_NUM_TASKS"] = "1";
    const CommandResult run = run_command(launch_words(variables, {"--steps", "1"}));
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, ContainsSubstring("srun stagecraft launch"));
  }
}

TEST_CASE("processes of a step that nothing joins do not train, each for itself",
          "[tools][slurm][bad-input]") {
  Variables variables = of_process(0, "/");
  const CommandResult run = run_command(words_in(variables, {"train", "--steps", "1"}));
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err,
             ContainsSubstring("started 2 processes") &&
                 ContainsSubstring("srun stagecraft launch -- train"));
  variables["SLURM_STEP_NUM_TASKS"] = "1";
  CHECK(run_command(words_in(variables, {"train", "--steps", "1", "--dim", "16"})).exit_code == 0);
}

TEST_CASE("processes of a step meet, and leave nothing", "[tools][slurm]") {
  const TemporaryFolder folder;
  const std::vector<std::string> train{"--layers", "2", "--steps", "2", "--verify"};
  RunningCommand worker(launch_words(of_process(1, folder.path()), train));
  const CommandResult driver = run_command(launch_words(of_process(0, folder.path()), train));
  INFO(driver.out << driver.err);
  CHECK(driver.exit_code == 0);
  CHECK_THAT(driver.out, ContainsSubstring("equal"));
  CHECK(worker.wait().exit_code == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a step of a run with --restarts goes on after a worker was killed or stopped (KW-2)",
          "[tools][slurm][restarts]") {
  const int signal = GENERATE(SIGKILL, SIGSTOP);
  StruckStep step({"--restarts", "1", "--verify"});
  REQUIRE(step.driver.wait_for_output("\"event\":\"step\",\"step\":3,"));
  step.strike(signal);
  const CommandResult driver = step.driver.wait();
  CAPTURE(driver.out, driver.err);
  CHECK(driver.exit_code == 0);
  CHECK_THAT(driver.out,
             ContainsSubstring("\"event\":\"restart\",") &&
                 ContainsSubstring("\"from\":\"mirrors\"") &&
                 ContainsSubstring("\"bit_equal\":true"));
  const CommandResult worker = step.worker.wait();
  CHECK(worker.exit_code == 0);
  CHECK_THAT(worker.err,
             ContainsSubstring("worker-0 has ended with status 137; the program calls for another "
                               "one, and it starts here"));
  CHECK(std::filesystem::is_empty(step.folder.path()));
}

TEST_CASE("a step whose run does without a lost worker starts no other (KW-1)",
          "[tools][slurm][restarts]") {
  StruckStep step({});
  REQUIRE(step.driver.wait_for_output("\"event\":\"step\",\"step\":3,"));
  step.strike(SIGKILL);
  const CommandResult driver = step.driver.wait();
  CHECK(driver.exit_code == 1);
  CHECK_THAT(driver.err, ContainsSubstring("rank 1 is lost"));
  const CommandResult worker = step.worker.wait();
  CHECK(worker.exit_code == 128 + SIGKILL);
  CHECK_THAT(worker.err, !ContainsSubstring("calls for another"));
  CHECK(std::filesystem::is_empty(step.folder.path()));
}

TEST_CASE("a worker ends with a driver that could not begin", "[tools][slurm]") {
  const TemporaryFolder folder;
  RunningCommand worker(launch_words(of_process(1, folder.path()), {"--no-such"}));
  const CommandResult driver =
      run_command(launch_words(of_process(0, folder.path()), {"--no-such"}));
  INFO(driver.err);
  CHECK(driver.exit_code == 2);
  CHECK_THAT(driver.err, ContainsSubstring("--no-such"));
  const CommandResult end = worker.wait();
  CHECK(end.exit_code == 0);
  CHECK(end.err.empty());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE(
    "a step that is told to end while it waits for a worker leaves nothing, and waits no more",
    "[tools][slurm]") {
  const TemporaryFolder folder;
  std::vector<std::string> words{"timeout", "600"};  // it passes a signal on to all processes
  for (const std::string& word :
       words_in(of_process(0, folder.path()), {"launch", "--join-seconds", "500", "--", "train"})) {
    words.push_back(word);
  }
  RunningCommand driver(words);
  REQUIRE(driver.wait_for_error("missing rank 1"));
  REQUIRE(std::filesystem::exists(folder.path() + "/stagecraft-7.0/credentials/driver/key.pem"));
  driver.send_signal(SIGTERM);
  CHECK_FALSE(driver.wait().timed_out);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("credentials of a step go with its program, before its last process has come (STP-3)",
          "[tools][slurm]") {
  const TemporaryFolder folder;
  const std::string step = folder.path() + "/stagecraft-7.0";
  RunningCommand driver(words_in(of_process(0, folder.path()),
                                 {"launch",
                                  "--",
                                  "sh",
                                  "-c",
                                  "mkdir -p \"$STAGECRAFT_MEETING_PLACE/credentials/x\" "
                                  "&& echo made"}));
  REQUIRE(driver.wait_for_output("made"));
  CHECK(eventually([&] { return !std::filesystem::exists(step + "/credentials"); }, kCommandLimit));
  CHECK(std::filesystem::exists(step));  // for the process that has not come yet (STP-2)
  CHECK(run_command(launch_words(of_process(1, folder.path()), {})).exit_code == 0);
  CHECK(driver.wait().exit_code == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("the doctor says what it is in a step, and whether its processes meet",
          "[tools][slurm][doctor]") {
  const TemporaryFolder folder;
  const auto doctor = [&](int process) {
    Variables variables = of_process(process, folder.path());
    variables["SLURM_CPUS_PER_TASK"] = "3";
    variables["SLURM_MEM_PER_NODE"] = "2048";
    return words_in(variables, {"doctor"});
  };
  RunningCommand other(doctor(1));
  const CommandResult run = run_command(doctor(0));
  INFO(run.out << run.err);
  CHECK_THAT(run.out,
             ContainsSubstring("node node-a") && ContainsSubstring("task 0 of 2 of step 7.0") &&
                 ContainsSubstring("3 processors") && ContainsSubstring("2.0 GiB of memory") &&
                 ContainsSubstring("2 of 2 processes of this step meet there"));
  CHECK_THAT(other.wait().out, ContainsSubstring("task 1 of 2"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("the doctor finds a folder in which no step can meet", "[tools][slurm][doctor]") {
  const CommandResult run = run_command(words_in(of_process(0, "/nowhere"), {"doctor"}));
  CHECK(run.exit_code == 1);
  CHECK_THAT(
      run.out,
      ContainsSubstring("cannot meet in '/nowhere'") && ContainsSubstring("--meeting-place"));
}

TEST_CASE("a folder of another run is not met in", "[tools][slurm][bad-input]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/stagecraft-7.0");
  const CommandResult driver = run_command(launch_words(of_process(0, folder.path()), {}));
  CHECK(driver.exit_code == 2);
  CHECK_THAT(driver.err, ContainsSubstring("stagecraft-7.0") && ContainsSubstring("remove it"));
}

}  // namespace stagecraft::tests
