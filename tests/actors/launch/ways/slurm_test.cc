/// Tests how a process finds its place in a step of Slurm, from variables.
/// tests/hosts/slurm_test.cc uses a real Slurm.
#include "stagecraft/actors/launch/ways/slurm.h"

#include <cstdlib>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/slurm_variables.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::of_process;
using tests::Variables;

constexpr const char* kNames[] = {"SLURM_PROCID",
                                  "SLURM_STEP_NUM_TASKS",
                                  "SLURM_JOB_ID",
                                  "SLURM_STEP_ID",
                                  "SLURM_RESTART_COUNT",
                                  "SLURM_SUBMIT_DIR",
                                  "SLURM_STEP_NODELIST",
                                  "SLURMD_NODENAME",
                                  "SLURM_CPUS_PER_TASK",
                                  "SLURM_CPUS_ON_NODE",
                                  "SLURM_MEM_PER_NODE",
                                  "SLURM_MEM_PER_CPU"};

/// Returns the step that these variables describe.
std::optional<BatchStep> step_of(const Variables& variables) {
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
  return slurm_step();
}

TEST_CASE("a process that srun has not started is in no step", "[actors][slurm]") {
  CHECK_FALSE(step_of({}).has_value());
  // This is the script of a batch job.
  CHECK_FALSE(step_of({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}).has_value());
}

TEST_CASE("a step says what each process has", "[actors][slurm]") {
  Variables variables = of_process(0, "/");
  CHECK(step_of(variables)->processors == 0);
  CHECK(step_of(variables)->memory_bytes == 0.0);
  variables["SLURM_CPUS_PER_TASK"] = "3";
  variables["SLURM_MEM_PER_CPU"] = "100";
  variables["SLURM_CPUS_ON_NODE"] = "6";
  CHECK(step_of(variables)->processors == 3);
  CHECK(step_of(variables)->memory_bytes == 600.0 * 1024 * 1024);
  variables["SLURM_MEM_PER_NODE"] = "2048";
  CHECK(step_of(variables)->memory_bytes == 2048.0 * 1024 * 1024);
}

TEST_CASE("a step is known by job, step and how often it was queued", "[actors][slurm]") {
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

TEST_CASE("another node of a step is found in its list", "[actors][slurm]") {
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

TEST_CASE("variables of a step that make no sense are refused", "[actors][slurm][bad-input]") {
  for (const char* name : {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}) {
    Variables variables = of_process(0, "/");
    variables[name] = "two";
    CHECK_THROWS_WITH(step_of(variables), ContainsSubstring(name) && ContainsSubstring("\"two\""));
  }
}

TEST_CASE("the shell of a job is in no step, though it has the number of one", "[actors][slurm]") {
  for (const char* number : {"4294967290", "4294967291"}) {  // salloc's step, and a batch script's
    Variables variables = of_process(0, "/");
    variables["SLURM_STEP_ID"] = number;
    CHECK_FALSE(step_of(variables).has_value());
  }
}

TEST_CASE("the other processes of a step are told from workers that join by hand",
          "[actors][slurm]") {
  const SpawnOptions options{
      .workers_come = true, .workers_coming = 1, .meeting_place = "/home/me/stagecraft-7.0"};
  const auto way = workers_of_slurm(options);
  CHECK_FALSE(way->starts_workers());
  CHECK_THAT(way->late_advice({.host = "10.0.0.1", .port = 7077}),
             ContainsSubstring("other processes of this step") &&
                 ContainsSubstring("'/home/me/stagecraft-7.0'") &&
                 ContainsSubstring("do they reach 10.0.0.1:7077") &&
                 ContainsSubstring("--join-seconds") &&
                 !ContainsSubstring("stagecraft worker --join"));
  way->require_places(1);
  CHECK_THROWS_WITH(way->require_places(2),
                    ContainsSubstring("2 worker processes are needed, and 1 come: start more "
                                      "processes in this step (srun --ntasks)"));
}

}  // namespace
}  // namespace stagecraft
