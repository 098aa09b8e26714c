#include "stagecraft/scheduler/simulate/to_array.h"

#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using namespace cells;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("A-1: array to list to array is the identity", "[scheduler][to_array]") {
  const int stages = GENERATE(range(1, 7));
  const int microbatches = GENERATE(1, 2, 5, 8);
  for (const Schedule& array : {gpipe(stages, microbatches), one_f_one_b(stages, microbatches)}) {
    const Schedule list = array.to_list();
    CHECK(list.columns() == static_cast<std::size_t>(2 * microbatches));
    CHECK(to_array(list, array.stage_graph()) == array);
    CHECK(to_array(list, array.stage_graph()).to_list() == list);
  }
}

TEST_CASE("every entry moves to its earliest column", "[scheduler][to_array]") {
  const Schedule lazy = Schedule::parse(". 0F0 . . . 0B0\n. . . 1F0 1B0 .");
  CHECK(to_array(lazy, lazy.stage_graph()) == Schedule::parse("0F0 . . 0B0\n. 1F0 1B0 ."));
}

TEST_CASE("a task that does nothing has a column, too", "[scheduler][to_array]") {
  const Schedule list = Schedule::parse("@form list\n@frozen 0\n0F0 0B0 0F1 0B1\n1F0 1B0 1F1 1B1");
  CHECK(to_array(list, list.stage_graph()) ==
        Schedule::parse("0F0 0B0 0F1 0B1 .\n. 1F0 1B0 1F1 1B1"));
}

TEST_CASE("headers stay", "[scheduler][to_array]") {
  const Schedule list = Schedule::parse("@form list\n@rows 2\n@microbatches 3\n0F0 0B0\n1F0 1B0");
  const Schedule array = to_array(list, list.stage_graph());
  CHECK(array.headers().rows == 2);
  CHECK(array.microbatches() == 3);
}

TEST_CASE("a list that waits for itself has no columns", "[scheduler][to_array]") {
  const Schedule stuck = Schedule::parse("@form list\n0B0 0F0\n1F0 1B0");
  const StageGraph graph = stuck.stage_graph();
  (void)refusal([&] { (void)to_array(stuck, graph); }, Errc::ScheduleInvalid);
  (void)refusal([&] { (void)fits_array(stuck, graph); }, Errc::ScheduleInvalid);
}

TEST_CASE("a list that would fill the machine as an array stays a list", "[scheduler][to_array]") {
  std::vector<Schedule::Row> rows;
  for (int s = 0; s < 4000; ++s) {
    rows.push_back({F(s, 0), B(s, 0)});
  }
  const Schedule list(Schedule::Form::List, rows);
  const StageGraph graph = list.stage_graph();
  CHECK_FALSE(fits_array(list, graph));
  CHECK_THAT(refusal([&] { (void)to_array(list, graph); }, Errc::ScheduleParameter),
             ContainsSubstring("32000000 cells, expected at most 16777216"));
  CHECK(fits_array(one_f_one_b(4, 8), StageGraph::chain(4)));
}

}  // namespace
}  // namespace stagecraft
