/// Tests that a run of the command goes on with a spare if one of its hosts goes away for good.
#include <fstream>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/hosts/cluster_words.h"
#include "stagecraft/tests/hosts/skip.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the first event of this name among lines of --json.
nlohmann::json event_named(const std::string& name, const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (nlohmann::json event = nlohmann::json::parse(line); event.at("event") == name) {
      return event;
    }
  }
  return {};
}

TEST_CASE("a run whose host is gone for good goes on with a spare, and skips a dead one",
          "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(5);
  const std::string file = hosts.folder() + "/two-hosts";
  std::ofstream(file) << "host-1 addr=" << TestHosts::address(1)
                      << "\nhost-2 addr=" << TestHosts::address(2) << "\n";
  const Words train{STAGECRAFT_COMMAND,
                    "train",
                    "--ranks",
                    "2",
                    "--stages",
                    "2",
                    "--dim",
                    "32",
                    "--seq",
                    "16",
                    "--steps",
                    "60",
                    "--json"};
  RunningCommand run(launch_words(hosts,
                                  file,
                                  join(train, {"--restarts", "1", "--spares", "host-3,host-4"}),
                                  {"--silence-seconds", "2"}));
  run.keep_pace();
  const bool begins = run.wait_for_output(R"("event":"step","step":5,)");
  INFO(run.error());
  REQUIRE(begins);
  hosts.lose(3);
  hosts.lose(2);
  const CommandResult end = run.wait();
  INFO(end.out << end.err);
  REQUIRE(end.exit_code == 0);
  CHECK_THAT(end.err,
             ContainsSubstring("rank 1 goes to host-3, a spare: worker of rank 1 on host-2 is out "
                               "of reach") &&
                 ContainsSubstring("rank 1 goes to host-4, a spare: worker of rank 1 on host-3 is "
                                   "out of reach"));
  const nlohmann::json worker = event_named("restart", end.out).at("workers").at(0);
  CHECK(worker.at("rank") == 1);
  CHECK(worker.at("host") == "host-2");
  CHECK(worker.at("new_host") == "host-4");
  const CommandResult unbroken = run_command(train);
  REQUIRE(unbroken.exit_code == 0);
  CHECK(event_named("done", end.out).at("weights_sha256") ==
        event_named("done", unbroken.out).at("weights_sha256"));
}

}  // namespace
}  // namespace stagecraft::tests
