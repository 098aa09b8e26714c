#include "stagecraft/scheduler/rules/parts/transfer.h"

#include <array>
#include <string>
#include <vector>

#include "stagecraft/tests/scheduler/rules/parts/judged.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::rules {
namespace {

using test::Judged;
using Crossings = std::vector<std::string>;

/// Returns the transfers of a schedule: "0F0 for 1F0, row 0 to 1".
Crossings crossings_of(const char* text) {
  const Judged judged(text);
  Crossings crossings;
  for (const Transfer& transfer : transfers_of(judged.input)) {
    crossings.push_back(to_string(transfer.made) + " for " + to_string(transfer.needed_by) +
                        ", row " + std::to_string(judged.tasks.entry(transfer.from).row) + " to " +
                        std::to_string(judged.tasks.entry(transfer.to).row));
  }
  return crossings;
}

TEST_CASE("a value crosses for each task of another row that needs it, by the row of that task",
          "[scheduler][rules]") {
  CHECK(crossings_of("0F0 . . 0B0\n. 1F0 1B0 .\n") ==
        Crossings{"1B0 for 0B0, row 1 to 0", "0F0 for 1F0, row 0 to 1"});
  CHECK(crossings_of("@edges 0-1,0-2\n0F0 . . 0B0\n. 1F0 1B0 .\n. 2F0 2B0 .\n") ==
        Crossings{"1B0 for 0B0, row 1 to 0",
                  "2B0 for 0B0, row 2 to 0",
                  "0F0 for 1F0, row 0 to 1",
                  "0F0 for 2F0, row 0 to 2"});
}

TEST_CASE("nothing crosses between stages of one row, nor for an update", "[scheduler][rules]") {
  CHECK(crossings_of("0F0 1F0 1B0 0B0 0U 1U\n").empty());
  CHECK(crossings_of("0F0 0B0 .\n. . 0U\n").empty());
}

TEST_CASE("a value that no task makes does not cross", "[scheduler][rules]") {
  CHECK(crossings_of("0F0 . 0B0\n. 1F0 .\n") == Crossings{"0F0 for 1F0, row 0 to 1"});
}

TEST_CASE("a gradient comes from the input half, and none comes to a frozen beginning",
          "[scheduler][rules][surplus]") {
  CHECK(crossings_of("0F0 . . 0I0 0W0\n. 1F0 1I0 1W0 .\n") ==
        Crossings{"1I0 for 0I0, row 1 to 0", "0F0 for 1F0, row 0 to 1"});
  CHECK(crossings_of("@frozen 0\n0F0 . . 0B0\n. 1F0 1B0 .\n") ==
        Crossings{"0F0 for 1F0, row 0 to 1"});
}

TEST_CASE("every microbatch that has a part of a larger one crosses", "[scheduler][rules]") {
  CHECK(crossings_of("@sizes 1,2\n0F0 0F1 .\n. . 1F0\n") ==
        Crossings{"0F0 for 1F0, row 0 to 1", "0F1 for 1F0, row 0 to 1"});
}

TEST_CASE("a file lists transfers if an action of it moves a value", "[scheduler][rules]") {
  const std::array whole_stage{CommAction{.kind = CommKind::Unshard},
                               CommAction{.kind = CommKind::Reshard},
                               CommAction{.kind = CommKind::ReduceGrad}};
  const std::array one_receive{CommAction{.kind = CommKind::Unshard},
                               CommAction{.kind = CommKind::RecvBackward}};
  CHECK_FALSE(lists_transfers({}));
  CHECK_FALSE(lists_transfers({.communication = whole_stage}));
  CHECK(lists_transfers({.communication = one_receive}));
}

}  // namespace
}  // namespace stagecraft::rules
