#include "stagecraft/scheduler/model/placement.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a placement is read off the rows", "[scheduler][placement]") {
  const Placement placement = Placement::of(Schedule::parse("0F0 3F0\n1F0 2F0"), 5);
  CHECK(placement.row(StageId(3)) == 0);
  CHECK(placement.row(StageId(2)) == 1);
  CHECK_FALSE(placement.row(StageId(4)).has_value());
  CHECK(placement.stages(0) == std::vector{StageId(0), StageId(3)});
}

TEST_CASE("PM-1: a stage on two rows belongs to the row with most of its tasks",
          "[scheduler][placement]") {
  const Placement placement = Placement::of(Schedule::parse("0F0 1F1\n1F0 0F1 0F2"), 2);
  CHECK(placement.row(StageId(0)) == 1);
  CHECK(placement.row(StageId(1)) == 0);
}

}  // namespace
}  // namespace stagecraft
