#include "stagecraft/scheduler/model/schedule.h"

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

TEST_CASE("A-1: a list has no bubbles", "[scheduler][schedule]") {
  const Schedule list = Schedule::parse("0F0 . . 0B0\n. 1F0 1B0 .").to_list();
  CHECK(list.form() == Schedule::Form::List);
  CHECK(list.columns() == 2);
  CHECK(list == Schedule(Schedule::Form::List, {{F(0, 0), idle, B(0, 0)}, {F(1, 0), B(1, 0)}}));
}

TEST_CASE("microbatches count all replicas", "[scheduler][schedule]") {
  const Schedule two_ways = Schedule::parse(
      "@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 . 3F0 3B0 . 0B0\n2F0 1F0 . 1B0 2B0 .");
  CHECK(two_ways.stages() == 4);
  CHECK(two_ways.microbatches() == 2);
}

}  // namespace
}  // namespace stagecraft
