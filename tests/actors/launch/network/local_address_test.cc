#include "stagecraft/actors/launch/network/local_address.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

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

}  // namespace
}  // namespace stagecraft
