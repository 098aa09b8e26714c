#include "stagecraft/scheduler/formats/event_orders.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("orders are read line by line, and written as they are read", "[scheduler][text]") {
  const std::vector<EventOrder> orders =
      parse_event_orders("# by turns\n0F0>1 < 0F1\n\n  1F0<0F1 > 1   # and back\r\n12I3 < 0U");
  REQUIRE(orders.size() == 3);
  CHECK(to_string(orders[0]) == "0F0>1 < 0F1");
  CHECK(to_string(orders[1]) == "1F0 < 0F1>1");
  CHECK(to_string(orders[2]) == "12I3 < 0U");
  CHECK(orders[0].before.is_transfer());
  CHECK(orders[0].before.receiver == StageId(1));
  CHECK_FALSE(orders[0].after.is_transfer());
  CHECK(orders[2].before.task == Task{CellKind::BackwardInput, StageId(12), Microbatch(3)});
}

TEST_CASE("what is no order is refused with its place", "[scheduler][text][bad-input]") {
  const auto failure_of = [](const std::string& text) {
    return refusal([&] { (void)parse_event_orders(text); }, Errc::ScheduleParse);
  };
  CHECK_THAT(failure_of(""), ContainsSubstring("has no order"));
  CHECK_THAT(failure_of("# nothing\n"), ContainsSubstring("e.g. 0F0>1 < 0F1"));
  CHECK_THAT(failure_of("0F0 < 0F1\n  0F0 0F1"),
             ContainsSubstring("line 2, column 3: '0F0 0F1' is not an order"));
  CHECK_THAT(failure_of("0F0 < 0F1 < 0F2"), ContainsSubstring("line 1, column 1"));
  CHECK_THAT(failure_of("0F0 <"), ContainsSubstring("is not an order"));
  CHECK_THAT(failure_of("0F0 < F1"),
             ContainsSubstring("column 7: 'F1' does not begin with a task"));
  CHECK_THAT(failure_of("0F0|1B0 < 0F1"),
             ContainsSubstring("does not begin with a task and its stage"));
  CHECK_THAT(failure_of("0F0>one < 0F1"), ContainsSubstring("does not end with a stage"));
  CHECK_THAT(failure_of("0F0>1>2 < 0F1"), ContainsSubstring("does not end with a stage"));
  CHECK_THAT(failure_of("0X0 < 0F1"), ContainsSubstring("'0X0' is not a cell"));
  CHECK_THAT(failure_of("0f0 < 0F1"), ContainsSubstring("capital letters"));
}

}  // namespace
}  // namespace stagecraft
