#include "stagecraft/actors/launch/network/hosts.h"

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

}  // namespace
}  // namespace stagecraft
