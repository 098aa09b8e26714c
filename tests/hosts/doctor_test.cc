/// Tests `stagecraft doctor --hosts` on hosts of the test: it finds and names faults between them.
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "stagecraft/tests/hosts/test_hosts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kHelper = "--answer";

void skip_without_hosts() {
  if (const auto why = TestHosts::obstacle()) {
    SKIP(*why);
  }
}

/// Runs on the first host and checks all others.
CommandResult doctor(const TestHosts& hosts) {
  return run_command(
      hosts.on(0, {STAGECRAFT_COMMAND, "doctor", "--hosts", hosts.file(1), "--ssh", hosts.ssh()}));
}

bool has_no_helpers(const TestHosts& hosts, int host) {
  return eventually([&] { return hosts.processes(host, kHelper).empty(); },
                    std::chrono::seconds(20));
}

TEST_CASE("the doctor finds all ways open between three hosts, and leaves nothing there",
          "[hosts][doctor]") {
  skip_without_hosts();
  const TestHosts hosts(4);
  const CommandResult run = doctor(hosts);
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out,
             ContainsSubstring("host-3\n") && ContainsSubstring("all 12 are open") &&
                 ContainsSubstring("clock") && ContainsSubstring("0 problems"));
  for (int host = 1; host < hosts.size(); ++host) {
    CHECK(has_no_helpers(hosts, host));
  }
}

TEST_CASE("a firewall that drops one way is named by the pair", "[hosts][doctor][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const CommandResult rule = run_command(hosts.on(
      2,
      {"nft",
       "add table inet doctor; add chain inet doctor in { type filter hook input priority 0; }; "
       "add rule inet doctor in ip saddr " +
           TestHosts::address(1) + " tcp flags syn / syn,ack drop"}));
  if (rule.exit_code != 0) {
    SKIP("no rule can be made by nft: " + rule.err);
  }
  const CommandResult run = doctor(hosts);
  INFO(run.out << run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.out,
             ContainsSubstring("host-1 cannot reach host-2 (" + TestHosts::address(2)) &&
                 ContainsSubstring("connection timed out") && ContainsSubstring("firewall") &&
                 ContainsSubstring("1 problem,"));
}

TEST_CASE("a host whose link is down is a finding", "[hosts][doctor][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  hosts.set_link(2, false);
  const CommandResult run = doctor(hosts);
  INFO(run.out << run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(
      run.out,
      ContainsSubstring("host-2 is out of reach") && ContainsSubstring("`ssh host-2 true`") &&
          ContainsSubstring("4 of 6 ways were not tried") && ContainsSubstring("1 problem,"));
}

TEST_CASE("a host whose sshd does not answer is a finding", "[hosts][doctor][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  for (const int process : hosts.processes(2, "sshd")) {
    kill(process, SIGSTOP);  // it accepts connections and never answers
  }
  const CommandResult run = doctor(hosts);
  INFO(run.out << run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(
      run.out,
      ContainsSubstring("host-2 is out of reach") && ContainsSubstring("host-1\n  ok       build"));
}

}  // namespace
}  // namespace stagecraft::tests
