/// Tests actors of a program's own classes on two hosts.
#include <chrono>
#include <sstream>
#include <string>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/tests/faults/actor_rounds.h"
#include "stagecraft/tests/hosts/skip.h"
#include "stagecraft/tests/hosts/test_hosts.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using namespace std::chrono_literals;

/// Bounds what is promised within the silence, on a machine that does other work too.
constexpr std::chrono::milliseconds kActorsLimit = 30s;

TEST_CASE("actors on two hosts exchange tensors until one host is lost, which each call names",
          "[hosts][remote]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  hosts.enter(0);
  const std::string credentials = hosts.folder() + "/cluster";
  REQUIRE(run_command({STAGECRAFT_COMMAND, "credentials", "make", credentials, "--workers", "3"})
              .exit_code == 0);
  SpawnOptions options{
      .credentials = credentials, .port = 7077, .heartbeat = 400ms, .silence = 2000ms};
  const std::string worker = std::string(" worker=") + STAGECRAFT_SOAK + "\n";  // knows the class
  options.hosts = parse_hosts(
      "host-1 addr=" + hosts.address(1) + worker + "host-2 addr=" + hosts.address(2) + worker,
      "hosts");
  std::istringstream words(hosts.ssh());
  for (std::string word; words >> word;) {
    options.ssh.push_back(word);
  }
  const Cluster cluster = Cluster::spawn(2, options);
  ActorRounds actors(cluster);
  actors.begin(/*rounds=*/50);
  actors.check({}, kActorsLimit);
  actors.begin(/*rounds=*/200);
  hosts.lose(2);
  actors.check({Rank(1)}, kActorsLimit);
}

}  // namespace
}  // namespace stagecraft::tests
