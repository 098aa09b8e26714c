#include "stagecraft/tools/doctor/facts/names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using namespace std::chrono_literals;

TEST_CASE("names are looked up all at once", "[tools][doctor]") {
  const KnownNames known = resolve({"127.0.0.7", "::1", "no.such.invalid"}, 10s);
  CHECK(known.at("127.0.0.7") == std::vector<std::string>{"127.0.0.7"});
  CHECK(known.at("::1") == std::vector<std::string>{"::1"});
  CHECK_FALSE(known.contains("no.such.invalid"));
}

TEST_CASE("a name that is asked for twice has its addresses once, in order", "[tools][doctor]") {
  const KnownNames known = resolve({"localhost", "localhost"}, 10s);
  REQUIRE(known.size() == 1);
  const std::vector<std::string>& addresses = known.at("localhost");
  CHECK(std::ranges::is_sorted(addresses));
  CHECK(std::ranges::adjacent_find(addresses) == addresses.end());
  CHECK(std::ranges::find(addresses, "127.0.0.1") != addresses.end());
}

TEST_CASE("without names there is nothing to look up", "[tools][doctor]") {
  CHECK(resolve({}, 10s).empty());
  CHECK(resolve({""}, 10s).empty());
}

}  // namespace
}  // namespace stagecraft::tools
