#include "stagecraft/scheduler/rules/parts/violation.h"

#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

const Task kBackward{CellKind::Backward, StageId(0), Microbatch(1)};

TEST_CASE("a violation is told with as much of its place as it has", "[scheduler][rules]") {
  CHECK(to_string(Violation{
            .rule = "V22", .row = 0, .column = 2, .task = kBackward, .message = "it is early"}) ==
        "V22 row 0 column 2 (0B1): it is early");
  CHECK(to_string(Violation{.rule = "V01", .row = 3, .message = "it is short"}) ==
        "V01 row 3: it is short");
  CHECK(to_string(Violation{.rule = "V10", .task = kBackward, .message = "it is missing"}) ==
        "V10 (0B1): it is missing");
  CHECK(to_string(Violation{.rule = "V02", .message = "rows are missing"}) ==
        "V02: rows are missing");
}

TEST_CASE("an exchange is told by its cells, and by their places in the words of the form",
          "[scheduler][rules][repair]") {
  const Schedule array = Schedule::parse("0F0 0F1 .\n. 1F0 1F1|1B0\n");
  CHECK(to_string(Exchange{.row = 0, .first = 1, .second = 2}, array) ==
        "0F1 and the bubble of row 0 (columns 1 and 2)");
  CHECK(to_string(Exchange{.row = 1, .first = 2, .second = 1}, array) ==
        "1F1|1B0 and 1F0 of row 1 (columns 2 and 1)");
  CHECK(to_string(Exchange{.row = 1, .first = 0, .second = 1}, array.to_list()) ==
        "1F0 and 1F1|1B0 of row 1 (positions 0 and 1)");
}

TEST_CASE("an exchange moves two cells of one row, and nothing else",
          "[scheduler][rules][repair]") {
  const Schedule array = Schedule::parse("@stages 3\n@microbatches 4\n0F0 0F1 .\n. 1F0 1F1|1B0\n");
  const Exchange exchange{.row = 1, .first = 0, .second = 2};
  const Schedule moved = apply(array, exchange);
  CHECK(to_string(moved) ==
        to_string(Schedule::parse("@stages 3\n@microbatches 4\n0F0 0F1 .\n1F1|1B0 1F0 .\n")));
  CHECK(apply(moved, exchange) == array);
  const Schedule list = array.to_list();
  CHECK(apply(list, Exchange{.row = 0, .first = 1, .second = 0}) ==
        Schedule::parse("@form list\n0F1 0F0\n1F0 1F1|1B0\n"));
}

}  // namespace
}  // namespace stagecraft
