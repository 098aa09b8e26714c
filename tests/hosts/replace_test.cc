/// Tests workers that take the place of lost ones in a running driver: over ssh on the lost one's
/// host, and by hand on another host. The driver itself compares each run, bit by bit, with an
/// undisturbed one (cluster_driver.cc).
#include <csignal>

#include "stagecraft/tests/hosts/cluster_words.h"
#include "stagecraft/tests/hosts/skip.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kJoiningWorker = "--join";

/// Returns words of a driver that continues once new workers stand in the places of the lost ones.
Words driver_words(const TestHosts& hosts, int ranks, const std::string& way) {
  Words words{STAGECRAFT_CLUSTER_DRIVER, std::to_string(ranks), way};
  if (way == "load") {
    words.push_back(hosts.folder() + "/weights");
  }
  return words;
}

/// Kills the worker processes themselves, not the ssh and shells in front of them.
void kill_workers(const TestHosts& hosts, int host) {
  int killed = 0;
  for (const int process : hosts.processes(host, kJoiningWorker)) {
    if (read_text_file("/proc/" + std::to_string(process) + "/comm") == "stagecraft\n") {
      killed += kill(process, SIGKILL) == 0 ? 1 : 0;
    }
  }
  CHECK(killed > 0);
}

void wait_until_gone(const TestHosts& hosts, int host) {
  REQUIRE(eventually([&] { return hosts.processes(host, kJoiningWorker).empty(); }));
}

CommandResult check_end(RunningCommand& run, const std::string& place) {
  const CommandResult end = run.wait();
  INFO(end.out << end.err);
  CHECK(end.exit_code == 0);
  CHECK_THAT(end.out, ContainsSubstring(place) && ContainsSubstring("\nequal\n"));
  return end;
}

TEST_CASE("a worker that was killed on another host is replaced there over ssh",
          "[hosts][faults]") {
  skip_without_hosts();
  const std::string way = GENERATE("load", "recover");
  CAPTURE(way);
  const TestHosts hosts(3);
  RunningCommand run(launch_words(hosts, hosts.file(1), driver_words(hosts, 2, way)));
  REQUIRE(run.wait_for_output("training\n"));
  kill_workers(hosts, 2);
  const CommandResult end = check_end(run, "rank 1: incarnation 1 on host-2\n");
  CHECK_THAT(end.out,
             ContainsSubstring("rank 1 is lost") && ContainsSubstring("on host-2") &&
                 ContainsSubstring("was killed by signal 9"));
}

TEST_CASE("a host that was out of reach has its ranks again once it is back", "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  RunningCommand run(launch_words(hosts, hosts.file(1, 2), driver_words(hosts, 4, "load")));
  REQUIRE(run.wait_for_output("training\n"));
  hosts.set_link(2, false);
  REQUIRE(run.wait_for_output("not replaced: "));
  hosts.set_link(2, true);
  const CommandResult end = check_end(run, "rank 2: incarnation");
  CHECK_THAT(end.out,
             ContainsSubstring("on host-2 is out of reach") && ContainsSubstring("rank 2") &&
                 ContainsSubstring("ssh could not connect to host-2"));
  wait_until_gone(hosts, 2);  // the earlier ones too
}

TEST_CASE("a worker that joins by hand from another host takes the place of one that was killed",
          "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(4);
  const Joining joining(hosts);
  RunningCommand first(joining.worker(1, TestHosts::address(0), {"--place", "0"}));
  RunningCommand second(joining.worker(2, TestHosts::address(0), {"--place", "1"}));
  RunningCommand driver(
      joining.driver(driver_words(hosts, 2, "load"), {"STAGECRAFT_INTERFACE=eth0"}));
  REQUIRE(driver.wait_for_output("training\n"));
  kill_workers(hosts, 2);
  REQUIRE(driver.wait_for_output("failed: "));
  REQUIRE(driver.wait_for_error("1 of 2 workers; missing rank 1\n"));
  RunningCommand third(joining.worker(3, TestHosts::address(0)));
  const CommandResult end = check_end(driver, "rank 1: incarnation 1 on host-3\n");
  CHECK_THAT(end.out,
             ContainsSubstring("rank 1 is lost") && ContainsSubstring("on host-2 is out of reach"));
  CHECK(first.wait().exit_code == 0);
  CHECK(third.wait().exit_code == 0);
}

TEST_CASE("a worker that was early takes the place of one whose link went down",
          "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(4);
  const Joining joining(hosts);
  RunningCommand driver(
      joining.driver(driver_words(hosts, 2, "recover"), {"STAGECRAFT_INTERFACE=eth0"}));
  RunningCommand first(joining.worker(1, TestHosts::address(0), {"--place", "0"}));
  RunningCommand second(joining.worker(2, TestHosts::address(0), {"--place", "1"}));
  REQUIRE(driver.wait_for_output("training\n"));
  RunningCommand third(joining.worker(3, TestHosts::address(0), {"--patience", "100000"}));
  hosts.set_link(2, false);
  REQUIRE(driver.wait_for_output("failed: "));
  const CommandResult end = check_end(driver, "rank 1: incarnation 1 on host-3\n");
  CHECK_THAT(end.out, ContainsSubstring("on host-2 is out of reach"));
  hosts.set_link(2, true);
  CHECK(second.wait().exit_code == 0);  // it ends by itself, cut off as it was
}

}  // namespace
}  // namespace stagecraft::tests
