#include "stagecraft/scheduler/builders/parts/time_slots.h"

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("tasks stand in their slots, the others are idle", "[scheduler][builders]") {
  TimeSlots slots(2, 3);
  slots.put(1, 2, {CellKind::Forward, StageId(1), Microbatch(0)});
  slots.put(0, 0, {CellKind::Backward, StageId(0), Microbatch(4)});
  CHECK(Schedule(Schedule::Form::Array, slots.rows()) == Schedule::parse("0B4 . .\n. . 1F0"));
}

TEST_CASE("two tasks of one slot are a fault of the builder", "[scheduler][builders]") {
  TimeSlots slots(1, 1);
  slots.put(0, 0, {CellKind::Forward, StageId(0), Microbatch(0)});
  CHECK_THAT(refusal(
                 [&] {
                   slots.put(0, 0, {CellKind::Backward, StageId(0), Microbatch(0)});
                 },
                 Errc::Internal),
             ContainsSubstring("slot 0 of row 0 holds 0F0, but 0B0 needs it too"));
}

}  // namespace
}  // namespace stagecraft
