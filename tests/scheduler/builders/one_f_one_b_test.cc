#include "stagecraft/scheduler/builders/one_f_one_b.h"

#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

const StageGraph kClip = StageGraph::from_edges(3, {{0, 2}, {1, 2}});

TEST_CASE("1F1B's array is the published one", "[scheduler][builders]") {
  CHECK(one_f_one_b(4, 8) == Schedule::parse(R"(
F0 F1 F2 F3 . . . B0 F4 B1 F5 B2 F6 B3 F7 B4 . B5 . B6 . B7
. F0 F1 F2 . . B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 . B6 . B7 .
. . F0 F1 . B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 . B7 . .
. . . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 . . .)"));
}

TEST_CASE("two encoders and a head save a chain's latency", "[scheduler][builders]") {
  CHECK(one_f_one_b(kClip, 4) == Schedule::parse(R"(
F0 F1 . B0 F2 B1 F3 B2 . B3
F0 F1 . B0 F2 B1 F3 B2 . B3
. F0 B0 F1 B1 F2 B2 F3 B3 .)"));
  CHECK(one_f_one_b(3, 4) == Schedule::parse(R"(
F0 F1 F2 . . B0 F3 B1 . B2 . B3
. F0 F1 . B0 F2 B1 F3 B2 . B3 .
. . F0 B0 F1 B1 F2 B2 F3 B3 . .)"));
  CHECK(simulate(one_f_one_b(kClip, 4), kClip).makespan == 15);
  CHECK(simulate(one_f_one_b(3, 4), StageGraph::chain(3)).makespan == 18);
}

TEST_CASE("in-flight counts of a DAG follow its longest way to a sink", "[scheduler][builders]") {
  const StageGraph five = StageGraph::from_edges(5, {{0, 1}, {0, 2}, {1, 3}, {3, 4}, {2, 4}});
  CHECK(in_flight_counts(five) == std::vector{4, 3, 2, 2, 1});
  CHECK(simulate(one_f_one_b(five, 8), five).makespan == 33);
  CHECK(simulate(one_f_one_b(five, 16), five).makespan == 57);
  const StageGraph seven =
      StageGraph::from_edges(7, {{0, 1}, {1, 2}, {2, 6}, {3, 4}, {4, 6}, {5, 6}});
  CHECK(in_flight_counts(seven) == std::vector{4, 3, 2, 3, 2, 2, 1});
  CHECK(simulate(one_f_one_b(seven, 8), seven).makespan == 33);
  CHECK(simulate(one_f_one_b(seven, 16), seven).makespan == 57);
}

TEST_CASE("a chain given as a graph is the chain", "[scheduler][builders]") {
  CHECK(one_f_one_b(StageGraph::chain(5), 7) == one_f_one_b(5, 7));
}

}  // namespace
}  // namespace stagecraft
