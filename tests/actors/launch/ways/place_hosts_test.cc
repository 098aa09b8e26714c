#include "stagecraft/actors/launch/ways/place_hosts.h"

#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::vector<Host> kTwo{{.name = "a", .slots = 2}, {.name = "b"}};
const std::vector<Host> kSpares{{.name = "s"}, {.name = "t"}};

std::string on(const PlaceHosts& hosts, int place) {
  return hosts.host_of(place).value().name;
}

/// Replaces the worker of a place while only these hosts take workers. Returns the hosts that were
/// asked, in order: the last one takes it, unless the text ends with "-".
std::string ask(PlaceHosts& hosts, int place, const std::string& takers) {
  std::string asked;
  for (;;) {
    (void)hosts.prepare(place);
    asked += on(hosts, place);
    if (takers.find(asked.back()) != std::string::npos) {
      return asked;
    }
    if (!hosts.give_up(place)) {
      return asked + "-";
    }
  }
}

TEST_CASE("places fill the hosts of the list one after the other", "[actors][hosts]") {
  const PlaceHosts hosts(kTwo, kSpares);
  CHECK(on(hosts, 0) == "a");
  CHECK(on(hosts, 1) == "a");
  CHECK(on(hosts, 2) == "b");
  CHECK_FALSE(hosts.host_of(3));
}

TEST_CASE("a host that takes another worker keeps its place", "[actors][hosts]") {
  PlaceHosts hosts(kTwo, kSpares);
  hosts.use(3);
  CHECK_FALSE(hosts.prepare(2));
  CHECK(ask(hosts, 2, "abst") == "b");
}

TEST_CASE("without spares a place belongs to its host", "[actors][hosts]") {
  PlaceHosts hosts(kTwo, {});
  hosts.use(1);
  CHECK(ask(hosts, 0, "b") == "a-");
  CHECK(ask(hosts, 0, "a") == "a");
}

TEST_CASE("a place whose host takes no worker goes to the first spare that does",
          "[actors][hosts]") {
  PlaceHosts hosts(kTwo, kSpares);
  hosts.use(3);
  CHECK_FALSE(hosts.prepare(2));
  CHECK(hosts.give_up(2));
  CHECK(hosts.prepare(2) == "s, a spare");
  CHECK(hosts.give_up(2));
  CHECK(hosts.prepare(2) == "t, a spare");
  CHECK(on(hosts, 0) == "a");  // others stay
}

TEST_CASE("a spare has room for the workers of the largest host, and the next spare for more",
          "[actors][hosts]") {
  PlaceHosts hosts({{.name = "a", .slots = 2}, {.name = "b", .slots = 2}, {.name = "c"}}, kSpares);
  hosts.use(5);
  CHECK(ask(hosts, 0, "st") == "as");
  CHECK(ask(hosts, 1, "st") == "s");  // keeps PH-2: a is not asked again
  CHECK(ask(hosts, 2, "st") == "bt");
  CHECK(ask(hosts, 3, "st") == "t");
}

TEST_CASE("if no spare is left, free slots of the list come first, and then one worker more",
          "[actors][hosts]") {
  PlaceHosts hosts({{.name = "a"}, {.name = "b"}, {.name = "c", .slots = 2}}, {{.name = "s"}});
  hosts.use(3);  // one slot of c is free
  CHECK_FALSE(hosts.prepare(0));
  CHECK(hosts.give_up(0));
  CHECK(hosts.prepare(0) == "s, a spare");
  CHECK(hosts.give_up(0));
  CHECK(hosts.prepare(0) == "c, which has a free slot");
  CHECK(hosts.give_up(0));
  CHECK(hosts.prepare(0) == "b, which has one worker more than its slots then");
  CHECK_FALSE(hosts.give_up(0));
}

TEST_CASE("no host gets two workers more than its slots", "[actors][hosts]") {
  PlaceHosts hosts({{.name = "a"}, {.name = "b"}, {.name = "c"}}, {{.name = "s"}});
  hosts.use(3);
  CHECK(ask(hosts, 0, "c") == "asbc");
  CHECK(ask(hosts, 1, "c") == "b-");
}

TEST_CASE("a host that came back is not moved back to, and has room again", "[actors][hosts]") {
  PlaceHosts hosts({{.name = "a"}, {.name = "b"}}, {{.name = "s"}});
  hosts.use(2);
  CHECK(ask(hosts, 0, "s") == "as");
  CHECK(ask(hosts, 0, "abs") == "s");
  CHECK(ask(hosts, 0, "") == "sb-");  // a is known to take none
  CHECK(ask(hosts, 0, "a") == "a");   // and is asked again, since no host is left
  CHECK(ask(hosts, 1, "s") == "bs");
}

TEST_CASE("after all hosts have failed, each is asked again, the listed one first",
          "[actors][hosts]") {
  PlaceHosts hosts(kTwo, kSpares);
  hosts.use(3);
  CHECK(ask(hosts, 2, "") == "bsta-");
  CHECK(hosts.prepare(2) == "b again");
  CHECK(ask(hosts, 2, "t") == "bst");
}

TEST_CASE("a spare starts the program of the line that it stands in for", "[actors][hosts]") {
  const Host line{.name = "b",
                  .address = "10.0.0.2",
                  .worker = "/opt/w",
                  .environment = {{"OMP_NUM_THREADS", "1"}}};
  PlaceHosts hosts({{.name = "a"}, line}, {{.name = "s"}});
  hosts.use(2);
  CHECK(hosts.host_of(1) == line);
  CHECK(ask(hosts, 1, "s") == "bs");
  const Host spare = hosts.host_of(1).value();
  CHECK(spare.worker == line.worker);
  CHECK(spare.environment == line.environment);
  CHECK(spare.address.empty());
}

TEST_CASE("names of spares that cannot be right are refused", "[actors][hosts][refusals]") {
  const auto check_refused = [](const std::vector<Host>& hosts,
                                const std::vector<Host>& spares,
                                const std::string& message) {
    CHECK_THROWS_WITH(check_spares(hosts, spares), ContainsSubstring(message));
  };
  check_spares(kTwo, kSpares);
  check_spares({}, {});
  check_refused(kTwo, {{.name = "s"}, {.name = "b"}}, "b is a spare and in the list of hosts");
  check_refused(kTwo, {{.name = "s"}, {.name = "s"}}, "s is named twice as a spare: name it once");
  check_refused(kTwo, {{.name = ""}}, "expected names of spare hosts, as ssh takes them");
  check_refused(kTwo, {{.name = "-x"}}, "found \"-x\"");
  check_refused(kTwo, {{.name = "s slots=2"}}, "found \"s slots=2\"");
  check_refused({}, kSpares, "stagecraft launch --hosts FILE -- train");
}

}  // namespace
}  // namespace stagecraft
