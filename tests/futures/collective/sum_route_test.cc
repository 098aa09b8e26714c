#include "stagecraft/futures/collective/sum_route.h"

#include <string>
#include <utility>

#include "stagecraft/futures/transport/forwarding_transport.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::collective {
namespace {

/// Says that each rank is on the host of its letter.
class Lettered final : public ForwardingTransport {
 public:
  Lettered(std::string hosts, Rank self)
      : ForwardingTransport(InprocNetwork(static_cast<int>(hosts.size())).endpoint(self)),
        hosts_(std::move(hosts)) {}
  [[nodiscard]] std::string host_of(Rank rank) const override {
    return hosts_.substr(rank.index(), 1);
  }

 private:
  const std::string hosts_;
};

std::vector<Rank> ranks(std::initializer_list<int> numbers) {
  std::vector<Rank> all;
  for (const int number : numbers) {
    all.emplace_back(number);
  }
  return all;
}

SumRoute route(const std::string& hosts, const std::vector<Rank>& members, int self) {
  return sum_route({.ranks = members, .id = 0}, Lettered(hosts, Rank(self)));
}

TEST_CASE("members of one host exchange parts with all", "[futures][collective]") {
  CHECK(route("aaaa", ranks({0, 1, 2, 3}), 2) == SumRoute{.here = ranks({0, 1, 2, 3})});
  CHECK(route("aabb", ranks({2, 3}), 3) == SumRoute{.here = ranks({2, 3})});
  CHECK(route("a", ranks({0}), 0) == SumRoute{.here = ranks({0})});
}

TEST_CASE("hosts with as many consecutive members pass sums on from one to the next",
          "[futures][collective]") {
  const std::vector<Rank> all = ranks({0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(route("aaabbbccc", all, 0) == SumRoute{.here = ranks({0, 1, 2}), .after = Rank(3)});
  CHECK(route("aaabbbccc", all, 4) ==
        SumRoute{.here = ranks({3, 4, 5}), .before = Rank(1), .after = Rank(7)});
  CHECK(route("aaabbbccc", all, 8) == SumRoute{.here = ranks({6, 7, 8}), .before = Rank(5)});
  CHECK(route("aabb", ranks({0, 1, 2, 3}), 2) ==
        SumRoute{.here = ranks({2, 3}), .before = Rank(0)});
  // Ranks that are no members may stand between them.
  CHECK(route("aaaabbbb", ranks({0, 2, 4, 6}), 6) ==
        SumRoute{.here = ranks({4, 6}), .before = Rank(2)});
}

TEST_CASE("where hosts are not alike, or have one member each, all exchange parts with all",
          "[futures][collective]") {
  for (const std::string hosts : {"abcd", "aaab", "abbb", "aabc", "abab", "abba"}) {
    CAPTURE(hosts);
    for (int self = 0; self < 4; ++self) {
      CHECK(route(hosts, ranks({0, 1, 2, 3}), self) == SumRoute{.here = ranks({0, 1, 2, 3})});
    }
  }
}

TEST_CASE("on more hosts than each has members, all exchange parts with all",
          "[futures][collective]") {
  const std::vector<Rank> all = ranks({0, 1, 2, 3, 4, 5});
  CHECK(route("aabbcc", all, 3) == SumRoute{.here = all});
}

TEST_CASE("a host to which the ranks return is passed again", "[futures][collective]") {
  const std::vector<Rank> all = ranks({0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(route("aaabbbaaa", all, 4) ==
        SumRoute{.here = ranks({3, 4, 5}), .before = Rank(1), .after = Rank(7)});
}

}  // namespace
}  // namespace stagecraft::collective
