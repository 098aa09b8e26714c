/// Tests names and addresses of hosts: several interfaces, IPv6, names with different meanings on
/// different hosts. Each process binds the address that was asked for, and reports it.
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <regex>
#include <set>

#include "stagecraft/tests/hosts/cluster_words.h"
#include "stagecraft/tests/hosts/skip.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

const Words kFewSteps{"train", "--steps", "3", "--verify"};
const Words kManySteps{"train", "--steps", "100000", "--json"};

std::string file_of(const TestHosts& hosts, const std::string& lines) {
  const std::string path = hosts.folder() + "/lines";
  std::ofstream(path) << lines;
  return path;
}

/// Returns the addresses at which processes of a host listen, except those of its sshd.
std::set<std::string> bound(const TestHosts& hosts, int host) {
  std::istringstream lines(run_command(hosts.on(host, {"ss", "-Htln"})).out);
  std::set<std::string> all;
  std::string state, queued, limit, address;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream(line) >> state >> queued >> limit >> address;
    if (!address.ends_with(":22")) {
      all.insert(address.substr(0, address.rfind(':')));
    }
  }
  return all;
}

/// Returns a file of the hosts from the first on, with `words` after the name of each.
std::string file_of(const TestHosts& hosts, const std::function<std::string(int)>& words) {
  std::string lines;
  for (int host = 1; host < hosts.size(); ++host) {
    lines += TestHosts::name(host) + " " + words(host) + "\n";
  }
  return file_of(hosts, lines);
}

/// Makes hosts with a second network, 10.78.0.0, on eth1.
struct TwoNetworks {
  explicit TwoNetworks(int count) : hosts(count) {
    for (int host = 0; host < count; ++host) {
      hosts.add_interface(host, "eth1", second(host) + "/24");
    }
  }
  static std::string second(int host) { return "10.78.0." + std::to_string(host + 1); }

  const TestHosts hosts;
};

TEST_CASE("what --interface names is bound, there and on the workers' side, and told", "[hosts]") {
  skip_without_hosts();
  const TwoNetworks networks(3);
  const TestHosts& hosts = networks.hosts;
  const std::string interface = GENERATE("eth1", "10.78.0.1");
  RunningCommand run(launch_words(
      hosts, file_of(hosts, [](int) { return ""; }), kManySteps, {"--interface", interface}));
  REQUIRE(run.wait_for_output("\"step\""));
  for (int host = 0; host < hosts.size(); ++host) {
    CHECK(bound(hosts, host) == std::set{TwoNetworks::second(host)});
  }
  run.send_signal(SIGKILL);
  const std::string told = run.wait().err;
  INFO(told);
  CHECK(std::regex_search(
      told,
      std::regex("train: workers join at 10\\.78\\.0\\.1:[0-9]+; tensors for this process arrive "
                 "at tcp://10\\.78\\.0\\.1:[0-9]+\n")));
  CHECK(std::regex_search(told,
                          std::regex("train: rank 1: process [0-9]+ on host-2, tensors arrive at "
                                     "tcp://10\\.78\\.0\\.3:[0-9]+\n")));
}

TEST_CASE("tensors take the network that addr= names, whatever the driver listens at", "[hosts]") {
  skip_without_hosts();
  const TwoNetworks networks(3);
  const TestHosts& hosts = networks.hosts;
  const CommandResult run = run_command(
      launch_words(hosts,
                   file_of(hosts, [](int host) { return "addr=" + TwoNetworks::second(host); }),
                   kFewSteps,
                   {"--interface", "eth0"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err,
             ContainsSubstring("workers join at 10.77.0.1:") &&
                 ContainsSubstring("tensors arrive at tcp://10.78.0.2:") &&
                 ContainsSubstring("tensors arrive at tcp://10.78.0.3:"));
}

TEST_CASE("an interface or address that a host does not have is refused with those that it has",
          "[hosts][refusals]") {
  skip_without_hosts();
  const TestHosts hosts(2);
  const std::string good = file_of(hosts, "host-1 addr=10.77.0.2\n");
  for (const std::string wrong : {"eth9", "10.77.0.2", "fd77::1"}) {
    const CommandResult run =
        run_command(launch_words(hosts, good, {"train", "--layers", "1"}, {"--interface", wrong}));
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err,
               ContainsSubstring("neither an interface nor an address \"" + wrong + "\"") &&
                   ContainsSubstring("it has lo (127.0.0.1), eth0 (10.77.0.1)"));
  }
  const CommandResult run = run_command(
      launch_words(hosts, file_of(hosts, "host-1 addr=10.77.0.9\n"), {"train", "--layers", "1"}));
  INFO(run.err);
  CHECK(run.exit_code != 0);
  CHECK_THAT(run.err,
             ContainsSubstring("[rank 0 host-1]") &&
                 ContainsSubstring("neither an interface nor an address \"10.77.0.9\"") &&
                 ContainsSubstring("eth0 (10.77.0.2)") &&
                 ContainsSubstring("of rank 0 on host-1 ended with exit status 2"));
}

TEST_CASE("a driver whose own name means loopback is reached by the other hosts", "[hosts]") {
  skip_without_hosts();
  const TestHosts hosts(2);
  // Debian's installer writes it like this.
  hosts.set_names(0, "127.0.0.1 localhost\n127.0.1.1 host-0\n10.77.0.2 host-1\n");
  const CommandResult run =
      run_command(launch_words(hosts, file_of(hosts, "host-0\nhost-1\n"), kFewSteps));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err,
             ContainsSubstring("workers join at 10.77.0.1:") &&
                 ContainsSubstring("tensors arrive at tcp://10.77.0.1:") &&
                 ContainsSubstring("tensors arrive at tcp://10.77.0.2:"));
}

TEST_CASE("a driver's name may mean another address of it on every host", "[hosts]") {
  skip_without_hosts();
  const TwoNetworks networks(3);
  const TestHosts& hosts = networks.hosts;
  const Joining joining(hosts);
  // The first address of the name on host-1 is in the network on which the driver does not listen.
  hosts.set_names(1, "10.78.0.1 driver\n10.77.0.1 driver\n");
  hosts.set_names(2, "10.77.0.1 driver\n");
  RunningCommand driver(
      joining.driver(join({STAGECRAFT_COMMAND}, kFewSteps), {"STAGECRAFT_INTERFACE=eth0"}));
  RunningCommand first(joining.worker(1, "driver"));
  RunningCommand second(joining.worker(2, "driver"));
  const CommandResult run = driver.wait();
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err,
             ContainsSubstring("tensors arrive at tcp://10.77.0.2:") &&
                 ContainsSubstring("tensors arrive at tcp://10.77.0.3:"));
  CHECK(first.wait().exit_code == 0);
  CHECK(second.wait().exit_code == 0);
}

TEST_CASE("a name that means an address where nobody listens is told with it",
          "[hosts][refusals]") {
  skip_without_hosts();
  const TwoNetworks networks(2);
  const TestHosts& hosts = networks.hosts;
  const Joining joining(hosts);
  hosts.set_names(1, "10.78.0.1 driver\n");
  RunningCommand driver(
      joining.driver(join({STAGECRAFT_COMMAND}, kFewSteps), {"STAGECRAFT_INTERFACE=eth0"}));
  REQUIRE(driver.wait_for_error("workers join at 10.77.0.1:"));
  const CommandResult run = run_command(joining.worker(1, "driver", {"--patience", "3000"}));
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err,
             ContainsSubstring("nobody has answered at driver:7077 within 3000 ms") &&
                 ContainsSubstring("10.78.0.1: Connection refused"));
}

void skip_without_ipv6() {
  skip_without_hosts();
  if (access("/proc/net/if_inet6", R_OK) != 0) {
    SKIP("this machine has no IPv6");
  }
}

TEST_CASE("a cluster trains over IPv6 alone", "[hosts][ipv6]") {
  skip_without_ipv6();
  const TestHosts hosts(3);
  hosts.change_to_ipv6();
  const CommandResult run = run_command(
      launch_words(hosts,
                   file_of(hosts, [](int host) { return "addr=" + TestHosts::address6(host); }),
                   kFewSteps));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("equal"));
  CHECK_THAT(run.err,
             ContainsSubstring("workers join at [fd77::1]:") &&
                 ContainsSubstring("tensors arrive at tcp://[fd77::2]:") &&
                 ContainsSubstring("tensors arrive at tcp://[fd77::3]:"));
}

TEST_CASE("workers join an address of IPv6 by hand", "[hosts][ipv6]") {
  skip_without_ipv6();
  const TestHosts hosts(3);
  hosts.change_to_ipv6();
  const Joining joining(hosts);
  RunningCommand first(joining.worker(1, "[fd77::1]"));
  // Of the interface's two addresses, the driver takes the one that leads to other networks.
  RunningCommand driver(
      joining.driver(join({STAGECRAFT_COMMAND}, kFewSteps), {"STAGECRAFT_INTERFACE=eth0"}));
  RunningCommand second(joining.worker(2, "[fd77::1]", {"--bind", "FD77:0::3"}));
  const CommandResult run = driver.wait();
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err,
             ContainsSubstring("workers join at [fd77::1]:7077") &&
                 ContainsSubstring("tensors arrive at tcp://[fd77::2]:") &&
                 ContainsSubstring("tensors arrive at tcp://[fd77::3]:"));
  CHECK(first.wait().exit_code == 0);
  CHECK(second.wait().exit_code == 0);
}

}  // namespace
}  // namespace stagecraft::tests
