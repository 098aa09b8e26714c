#include "stagecraft/actors/launch/network/hosts.h"

#include "stagecraft/actors/launch/network/find_listener.h"
#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/ways/ssh.h"
#include "stagecraft/actors/launch/ways/start_turns.h"
#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a hosts' file has a line for each host", "[actors][hosts]") {
  const std::vector<Host> hosts = parse_hosts(
      "# all\nnode-a\n\n  me@node-b slots=3 addr=10.0.0.2 worker=/opt/w A=b=c OMP=1 # two\n", "f");
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0] == Host{.name = "node-a"});
  CHECK(hosts[1] == Host{.name = "me@node-b",
                         .slots = 3,
                         .address = "10.0.0.2",
                         .worker = "/opt/w",
                         .environment = {{"A", "b=c"}, {"OMP", "1"}}});
  CHECK(slots_of(hosts) == 4);
  CHECK(host_of_place(hosts, 0) == &hosts[0]);
  CHECK(host_of_place(hosts, 1) == &hosts[1]);
  CHECK(host_of_place(hosts, 3) == &hosts[1]);
  CHECK(host_of_place(hosts, 4) == nullptr);
}

TEST_CASE("a line that is no host is refused with its number", "[actors][hosts][bad-input]") {
  const auto [text, message] = GENERATE(
      table<std::string, std::string>({{"", "names no host"},
                                       {"# nobody\n", "names no host"},
                                       {"a\na\n", "f:2: a stands there twice"},
                                       {"a\nb slots=0\n", "f:2: expected slots=N"},
                                       {"a slots=2x\n", "f:1: expected slots=N"},
                                       {"slots=2\n", "f:1: expected a host's name first"},
                                       {"-oProxyCommand=x\n", "f:1: expected a host's name first"},
                                       {"a b\n", "f:1: expected slots=N, addr=ADDRESS"},
                                       {"a 1X=2\n", "f:1: expected slots=N, addr=ADDRESS"}}));
  CAPTURE(text);
  CHECK_THROWS_WITH(parse_hosts(text, "f"), ContainsSubstring(message));
  CHECK_THROWS_WITH(read_hosts("/nowhere/hosts"), ContainsSubstring("/nowhere/hosts"));
}

TEST_CASE("words of a worker reach another host's shell as they are", "[actors][hosts]") {
  const ChildProgram program = ssh_worker({"myssh", "-p", "22"},
                                          {.name = "b", .environment = {{"A", "it's"}}},
                                          {"/w x", "--join", "$h"});
  CHECK(program.path == "myssh");
  const std::vector<std::string>& words = program.arguments;
  REQUIRE(words.size() >= 4);
  CHECK(words[words.size() - 4] == "-p");
  CHECK(words[words.size() - 2] == "b");
  CHECK(words.back() ==
        R"(echo 'stagecraft: ssh is through'; env A='it'\''s' '/w x' '--join' '$h'; exit $?)");
}

TEST_CASE("of one host a few workers start at a time, of all hosts at once", "[actors][hosts]") {
  constexpr auto kQueued = StartState::Queued, kKnocks = StartState::Knocking,
                 kSettled = StartState::Settled;
  const std::vector<Host> hosts{
      {.name = "a", .slots = 24}, {.name = "b"}, {.name = "c", .slots = 9}};
  std::vector<StartState> places(34, kQueued);
  const auto turns = [&] { return start_turns(hosts, places); };
  CHECK(turns() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 24, 25, 26, 27, 28, 29, 30, 31, 32});
  for (const int place : turns()) {
    places[static_cast<std::size_t>(place)] = kKnocks;
  }
  CHECK(turns().empty());
  places[3] = places[7] = places[32] = kSettled;
  CHECK(turns() == std::vector<int>{8, 9, 33});
  CHECK(start_turns(hosts, std::vector(3, kQueued)) == std::vector<int>{0, 1, 2});
  CHECK(start_turns({}, std::vector(40, kQueued)).size() == 40);  // on this host
}

TEST_CASE("how a worker behind ssh ended is told by what ssh hands on", "[actors][hosts]") {
  CHECK(end_behind_ssh("ended with exit status 137", "b") == "was killed by signal 9 (Killed)");
  CHECK(end_behind_ssh("ended with exit status 1", "b") == "ended with exit status 1");
  CHECK_THAT(end_behind_ssh("ended with exit status 255", "b"),
             ContainsSubstring("ssh could not connect to b, or lost it"));
  CHECK_THAT(end_behind_ssh("was killed by signal 9 (Killed)", "b"),
             ContainsSubstring("the ssh to b was killed"));
}

TEST_CASE("addresses of this host are found by interface and by whom they reach",
          "[actors][hosts]") {
  CHECK(address_towards("127.0.0.1") == "127.0.0.1");
  CHECK(address_of_interface("lo") == "127.0.0.1");
  CHECK(address_of_interface("127.0.0.1") == "127.0.0.1");
  CHECK(address_towards(std::vector<Host>{}) == "127.0.0.1");
  CHECK(address_towards({Host{.name = "me@localhost"}}) == "127.0.0.1");
  CHECK_THROWS_WITH(
      address_towards({Host{.name = "localhost"}, Host{.name = "no.such.host.invalid"}}),
      ContainsSubstring("no.such.host.invalid"));
  CHECK_THROWS_WITH(address_of_interface("none0"),
                    ContainsSubstring("it has") && ContainsSubstring("lo (127.0.0.1)"));
  CHECK_THROWS_WITH(address_towards("no.such.host.invalid"),
                    ContainsSubstring("no.such.host.invalid"));
  CHECK(host_and_port("fd00::1", 7) == "[fd00::1]:7");
  CHECK(any_port_of("10.0.0.1") == "tcp://10.0.0.1:*");
}

TEST_CASE("where a driver listens is said as HOST:PORT, with brackets around IPv6",
          "[actors][hosts][bad-input]") {
  const auto said = [](const std::string& text) {
    const WorkerProcessOptions options =
        parse_worker_arguments({"--join", text, "--credentials", "c"});
    return options.host + " " + std::to_string(options.port);
  };
  CHECK(said("node-a:7") == "node-a 7");
  CHECK(said("10.0.0.1:7") == "10.0.0.1 7");
  CHECK(said("[fd77::1]:7") == "fd77::1 7");
  for (const char* text : {"node-a", ":7", "fd77::1:7", "[]:7", "fd77::1"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(said(text), ContainsSubstring("[ADDRESS]:PORT of IPv6, found"));
  }
  for (const char* text : {"node-a:", "node-a:x", "node-a:70000", "[fd77::1]"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(said(text), ContainsSubstring("--join"));
  }
}

TEST_CASE("a listener that does not come is told with what each address said", "[actors][hosts]") {
  const auto look = [](const std::string& host) {
    return find_listener(host, 1, std::chrono::milliseconds(300));  // nothing listens at port 1
  };
  CHECK_THROWS_WITH(look("127.0.0.1"),
                    ContainsSubstring("127.0.0.1:1 within 300 ms (127.0.0.1: Connection refused)"));
  CHECK_THROWS_WITH(look("no.such.host.invalid"), ContainsSubstring("no.such.host.invalid"));
}

}  // namespace
}  // namespace stagecraft
