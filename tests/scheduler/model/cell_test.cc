#include "stagecraft/scheduler/model/cell.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace cells;

TEST_CASE("a cell prints as stage, kind and microbatch", "[scheduler][cell]") {
  CHECK(to_string(F(1, 4)) == "1F4");
  CHECK(to_string(I(0, 12)) == "0I12");
  CHECK(to_string(U(3)) == "3U");
  CHECK(to_string(idle) == ".");
  CHECK(to_string(overlap(F(0, 7), B(7, 3))) == "0F7|7B3");
}

TEST_CASE("C-1: idle cells have no tasks and equal each other", "[scheduler][cell]") {
  CHECK(idle.tasks().empty());
  CHECK(idle == Cell());
  CHECK_FALSE(idle == F(0, 0));
}

TEST_CASE("a group holds its members in order and is not its first member", "[scheduler][cell]") {
  const Cell group = overlap(F(0, 7), B(7, 3));
  REQUIRE(group.tasks().size() == 2);
  CHECK(group.tasks()[1] == B(7, 3).tasks()[0]);
  CHECK_FALSE(group == F(0, 7));
  CHECK_FALSE(overlap(F(0, 7)) == F(0, 7));
  CHECK(group == overlap(F(0, 7), B(7, 3)));
}

}  // namespace
}  // namespace stagecraft
