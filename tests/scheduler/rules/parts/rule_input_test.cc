#include "stagecraft/scheduler/rules/parts/rule_input.h"

#include <string>
#include <utility>
#include <vector>

#include "stagecraft/tests/scheduler/rules/parts/judged.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::rules {
namespace {

using test::Judged;
using Visits = std::vector<std::string>;

/// Returns the tasks that are visited, each with its place.
Visits visits_of(const Judged& judged) {
  Visits visits;
  for_each_task(judged.input, [&](const Entry& entry, const Task& task) {
    visits.push_back(to_string(task) + " in " + where(judged.input, entry));
  });
  return visits;
}

TEST_CASE("every task of every cell is visited, row by row, without the bubbles",
          "[scheduler][rules]") {
  CHECK(visits_of(Judged("0F0 . 0F1|0B0\n. 1F0 1U\n")) == Visits{"0F0 in row 0, column 0",
                                                                 "0F1 in row 0, column 2",
                                                                 "0B0 in row 0, column 2",
                                                                 "1F0 in row 1, column 1",
                                                                 "1U in row 1, column 2"});
  CHECK(visits_of(Judged("@form list\n0F0 0B0\n")) ==
        Visits{"0F0 in row 0, position 0", "0B0 in row 0, position 1"});
}

TEST_CASE("VA-2: a task that does not exist is not visited, one that is there twice is, twice",
          "[scheduler][rules]") {
  CHECK(visits_of(Judged("@stages 1\n@microbatches 2\n0F2 0F1|1F0 0F1\n")) ==
        Visits{"0F1 in row 0, column 1", "0F1 in row 0, column 2"});
}

TEST_CASE("a violation in a cell names the cell and has it drawn", "[scheduler][rules]") {
  const Judged judged("0F0 .\n. 1F0\n");
  const Entry& entry = judged.tasks.entries().back();
  const Violation violation = at("V20", entry, entry.cell->tasks().front());
  CHECK(to_string(violation) == "V20 row 1 column 1 (1F0): ");
  CHECK(violation.cells == std::vector<std::pair<int, int>>{{1, 1}});
}

}  // namespace
}  // namespace stagecraft::rules
