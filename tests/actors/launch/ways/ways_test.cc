#include "stagecraft/actors/launch/ways/ways.h"

#include <set>

#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using tests::EnvironmentVariable;

const WorkerProcessOptions kToJoin{.host = "10.0.0.1", .port = 7077, .credentials = "c/worker-0"};

std::string advice(const SpawnOptions& options) {
  return way_of(options)->late_advice(kToJoin);
}

TEST_CASE("options choose the way of a fleet", "[actors][launch]") {
  const SpawnOptions here{.program = "/proc/self/exe"};
  CHECK_FALSE(way_of(here)->is_elsewhere());
  const SpawnOptions ssh{.program = "/proc/self/exe", .hosts = {{.name = "a"}}};
  CHECK(way_of(ssh)->is_elsewhere());
  CHECK(way_of(ssh)->starts_workers());
  const SpawnOptions joining{.workers_come = true};
  CHECK_FALSE(way_of(joining)->starts_workers());
  const std::string command = "stagecraft worker --join 10.0.0.1:7077 --credentials c/worker-0";
  CHECK_THAT(advice(joining), Catch::Matchers::EndsWith(command));
  CHECK_THAT(way_of(joining)->start_advice(kToJoin), Catch::Matchers::EndsWith(": " + command));
  CHECK(way_of(ssh)->start_advice(kToJoin).empty());
}

TEST_CASE("workers of a known number are those of a step only inside a step", "[actors][launch]") {
  const SpawnOptions known{.workers_come = true, .workers_coming = 1, .meeting_place = "/home"};
  CHECK_THAT(advice(known), ContainsSubstring("with stagecraft worker"));
  CHECK_THROWS_WITH(way_of(known)->require_places(2),
                    ContainsSubstring("2 worker processes are needed, and 1 come"));
  const EnvironmentVariable process("SLURM_PROCID", "0"), step("SLURM_STEP_ID", "0"),
      tasks("SLURM_STEP_NUM_TASKS", "2");
  CHECK_THAT(advice(known), ContainsSubstring("other processes of this step"));
  REQUIRE(batch_step());
  CHECK(batch_step()->system->name == "slurm");
}

TEST_CASE("every way has a name of its own, and the last one fits all options",
          "[actors][launch]") {
  std::set<std::string_view> names;
  for (const WayRow& row : all_ways()) {
    CHECK(names.insert(row.name).second);
  }
  CHECK(all_ways().back().fits({}));
}

TEST_CASE("a worker on this host is told all that it needs to join", "[actors][launch]") {
  const auto way = way_of({.program = "/proc/self/exe"});
  const ChildProgram program = way->program({.host = "127.0.0.1",
                                             .port = 7,
                                             .credentials = "c/worker-0",
                                             .place = 0,
                                             .incarnation = 2,
                                             .lifeline = kLifeline},
                                            nullptr);
  const WorkerProcessOptions told =
      parse_worker_arguments({program.arguments.begin() + 1, program.arguments.end()});
  CHECK(told.host == "127.0.0.1");
  CHECK(told.port == 7);
  CHECK(told.credentials == "c/worker-0");
  CHECK(told.incarnation == 2);
  CHECK(told.bind == "127.0.0.1");
  CHECK_FALSE(program.on_line);  // it writes to this process's output
}

}  // namespace
}  // namespace stagecraft
