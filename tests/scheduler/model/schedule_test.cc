#include "stagecraft/scheduler/model/schedule.h"

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace cells;

TEST_CASE("a schedule written in C++ equals its text", "[scheduler][schedule]") {
  const Schedule mine{{F(0, 0), F(0, 1), idle, B(0, 0), idle, B(0, 1)},
                      {idle, F(1, 0), B(1, 0), F(1, 1), B(1, 1), idle}};
  const Schedule same = Schedule::parse(
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   1F0 1B0 1F1 1B1 .  ");
  CHECK(mine == same);
  CHECK(mine.form() == Schedule::Form::Array);
  CHECK(mine.columns() == 6);
  CHECK(mine.stages() == 2);
  CHECK(mine.microbatches() == 2);
  CHECK(mine.stage_graph().is_chain());
}

TEST_CASE("A-1: a list has no bubbles, and array to list to array is the identity",
          "[scheduler][schedule]") {
  const int stages = GENERATE(range(1, 7));
  const int microbatches = GENERATE(1, 2, 5, 8);
  for (const Schedule& array : {gpipe(stages, microbatches), one_f_one_b(stages, microbatches)}) {
    const Schedule list = array.to_list();
    CHECK(list.form() == Schedule::Form::List);
    CHECK(list.columns() == static_cast<std::size_t>(2 * microbatches));
    CHECK(list.to_array(array.stage_graph()) == array);
    CHECK(list.to_array(array.stage_graph()).to_list() == list);
  }
}

TEST_CASE("to_array moves every entry to its earliest column", "[scheduler][schedule]") {
  const Schedule lazy = Schedule::parse(". 0F0 . . . 0B0\n. . . 1F0 1B0 .");
  CHECK(lazy.to_array(lazy.stage_graph()) == Schedule::parse("0F0 . . 0B0\n. 1F0 1B0 ."));
}

TEST_CASE("to_array refuses a list that waits for itself", "[scheduler][schedule]") {
  const Schedule stuck = Schedule::parse("@form list\n0B0 0F0\n1F0 1B0");
  CHECK_THROWS_AS(stuck.to_array(stuck.stage_graph()), Error);
}

TEST_CASE("microbatches count all replicas", "[scheduler][schedule]") {
  const Schedule two_ways = Schedule::parse(
      "@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 . 3F0 3B0 . 0B0\n2F0 1F0 . 1B0 2B0 .");
  CHECK(two_ways.stages() == 4);
  CHECK(two_ways.microbatches() == 2);
}

TEST_CASE("a list that would fill the machine as an array stays a list", "[scheduler][schedule]") {
  std::vector<Schedule::Row> rows;
  for (int s = 0; s < 4000; ++s) {
    rows.push_back({F(s, 0), B(s, 0)});
  }
  const Schedule list(Schedule::Form::List, rows);
  CHECK_THROWS_AS(list.to_array(list.stage_graph()), Error);
}

}  // namespace
}  // namespace stagecraft
