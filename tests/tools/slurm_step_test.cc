/// What `stagecraft launch` makes of the variables that srun sets, without a Slurm; with one:
/// tests/hosts/slurm_test.cc.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tools/launch/slurm.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Variables = std::map<std::string, std::string>;

constexpr const char* kNames[] = {"SLURM_PROCID",
                                  "SLURM_STEP_NUM_TASKS",
                                  "SLURM_JOB_ID",
                                  "SLURM_STEP_ID",
                                  "SLURM_RESTART_COUNT",
                                  "SLURM_SUBMIT_DIR",
                                  "SLURM_STEP_NODELIST",
                                  "SLURMD_NODENAME"};

Variables of_process(int process, const std::string& folder) {
  return {{"SLURM_PROCID", std::to_string(process)},
          {"SLURM_STEP_NUM_TASKS", "2"},
          {"SLURM_JOB_ID", "7"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_SUBMIT_DIR", folder},
          {"SLURM_STEP_NODELIST", "node-a"},
          {"SLURMD_NODENAME", "node-a"}};
}

/// The step of which these alone speak.
std::optional<tools::SlurmStep> step_of(const Variables& variables) {
  for (const char* name : kNames) {
    unsetenv(name);
  }
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  const struct Restore {
    ~Restore() {
      for (const char* name : kNames) {
        unsetenv(name);
      }
    }
  } restore;
  return tools::slurm_step();
}

std::vector<std::string> launch_words(const Variables& variables,
                                      const std::vector<std::string>& train) {
  std::vector<std::string> words{"env", "--unset=SLURM_RESTART_COUNT"};
  for (const auto& [name, value] : variables) {
    words.push_back(name + "=" + value);
  }
  words.insert(words.end(), {STAGECRAFT_COMMAND, "launch", "--", "train"});
  words.insert(words.end(), train.begin(), train.end());
  return words;
}

}  // namespace

TEST_CASE("a process that srun has not started is in no step", "[tools][slurm]") {
  CHECK_FALSE(step_of({}).has_value());
  // The script of a batch job.
  CHECK_FALSE(step_of({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}).has_value());
}

TEST_CASE("a step is known by job, step and how often it was queued", "[tools][slurm]") {
  Variables variables = of_process(1, "/home/me");
  const auto first = step_of(variables);
  REQUIRE(first.has_value());
  CHECK(first->process == 1);
  CHECK(first->processes == 2);
  CHECK(first->name == "7.0");
  CHECK(first->folder == "/home/me");
  CHECK(first->other_node.empty());
  variables["SLURM_RESTART_COUNT"] = "2";
  CHECK(step_of(variables)->name == "7.0-2");
}

TEST_CASE("another node of a step is found in its list", "[tools][slurm]") {
  const auto [list, here, other] = GENERATE(
      table<std::string, std::string, std::string>({{"a", "a", ""},
                                                    {"a,b", "a", "b"},
                                                    {"a,b", "b", "a"},
                                                    {"n[1-4]", "n1", "n4"},
                                                    {"n[1-4]", "n3", "n1"},
                                                    {"n[01,07-12]", "n01", "n12"},
                                                    {"n[01-03,07]x,login", "n01x", "login"},
                                                    {"r[1-2]n[3-4]", "r1n3", "r2n4"},
                                                    {"r[1-2]n[3-4]", "r2n4", "r1n3"},
                                                    {"n[5]", "n5", ""}}));
  CAPTURE(list, here);
  Variables variables = of_process(0, "/");
  variables["SLURM_STEP_NODELIST"] = list;
  variables["SLURMD_NODENAME"] = here;
  CHECK(step_of(variables)->other_node == other);
}

TEST_CASE("variables of a step that make no sense are refused", "[tools][slurm][bad-input]") {
  for (const char* name : {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}) {
    Variables variables = of_process(0, "/");
    variables[name] = "two";
    CHECK_THAT(refusal([&] { static_cast<void>(step_of(variables)); }),
               ContainsSubstring(name) && ContainsSubstring("\"two\""));
  }
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

TEST_CASE("a folder of another run is not met in", "[tools][slurm][bad-input]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/stagecraft-7.0");
  const CommandResult driver = run_command(launch_words(of_process(0, folder.path()), {}));
  CHECK(driver.exit_code == 2);
  CHECK_THAT(driver.err, ContainsSubstring("stagecraft-7.0") && ContainsSubstring("remove it"));
}

}  // namespace stagecraft::tests
