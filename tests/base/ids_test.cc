#include "stagecraft/base/ids.h"

#include <type_traits>
#include <unordered_set>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("an id of one kind is not an id of another, nor a number", "[base][ids]") {
  STATIC_REQUIRE_FALSE(std::is_convertible_v<StageId, Rank>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<int, StageId>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<StageId, int>);
  CHECK(StageId(3).index() == 3);
}

TEST_CASE("ids are ordered, hashed and printed by their number", "[base][ids]") {
  CHECK(StageId(1) < StageId(2));
  CHECK(StageId{} == StageId(0));
  CHECK(to_string(Step(12345678901)) == "12345678901");
  const std::unordered_set<Rank> ranks{Rank(0), Rank(1), Rank(1)};
  CHECK(ranks.size() == 2);
}

}  // namespace
}  // namespace stagecraft
