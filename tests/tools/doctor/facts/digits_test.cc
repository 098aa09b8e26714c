#include "stagecraft/tools/doctor/facts/digits.h"

#include <netinet/in.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

TEST_CASE("an address in digits is one of its family, for TCP at the port", "[tools][doctor]") {
  const SocketAddress four = address_of_digits("10.0.0.7", 4000);
  REQUIRE(four != nullptr);
  CHECK(four->ai_family == AF_INET);
  CHECK(four->ai_socktype == SOCK_STREAM);
  const auto* in4 = reinterpret_cast<const sockaddr_in*>(four->ai_addr);
  CHECK(ntohl(in4->sin_addr.s_addr) == 0x0a000007);
  CHECK(ntohs(in4->sin_port) == 4000);
  const SocketAddress six = address_of_digits("fd00::1", 65535);
  REQUIRE(six != nullptr);
  CHECK(six->ai_family == AF_INET6);
  CHECK(ntohs(reinterpret_cast<const sockaddr_in6*>(six->ai_addr)->sin6_port) == 65535);
}

TEST_CASE("a name is no address in digits, and is not looked up", "[tools][doctor][bad-input]") {
  for (const char* text :
       {"", "localhost", "10.0.0.256", "10.0.0.1.1", "[fd00::1]", "10.0.0.1:80"}) {
    CAPTURE(text);
    CHECK(address_of_digits(text, 1) == nullptr);
  }
}

}  // namespace
}  // namespace stagecraft::tools
