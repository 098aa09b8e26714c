#include "stagecraft/actors/launch/network/find_listener.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

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
