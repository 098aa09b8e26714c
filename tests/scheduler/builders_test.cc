/// The figures every builder must reproduce: width, makespan, idle, peak and hash, from the event simulation
/// of the published schedules with F = I = W = 1 and B = 2.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/hash.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

struct Oracle {
  std::string name;
  Schedule schedule;
  std::size_t columns;
  double makespan;
  double idle;  ///< of the row that idles most
  std::vector<int> peaks;
  std::uint64_t hash;
};

std::vector<int> each(int rows, int peak) { return std::vector<int>(static_cast<std::size_t>(rows), peak); }

/// from, from + by, ... for `rows` rows
std::vector<int> ramp(int rows, int from, int by) {
  std::vector<int> list;
  for (int r = 0; r < rows; ++r) {
    list.push_back(from + by * r);
  }
  return list;
}

const StageGraph kClip = StageGraph::from_edges(3, {{0, 2}, {1, 2}});

std::vector<Oracle> oracles() {
  return {
      {"GPipe(4,8)", gpipe(4, 8), 22, 33, 9, each(4, 8), 0x1490c2c0a1af78ed},
      {"GPipe(8,16)", gpipe(8, 16), 46, 69, 21, each(8, 16), 0x5d5512f318d722ad},
      {"1F1B(4,8)", one_f_one_b(4, 8), 22, 33, 9, ramp(4, 4, -1), 0xe668f443e2c0cd9d},
      {"1F1B(8,16)", one_f_one_b(8, 16), 46, 69, 21, ramp(8, 8, -1), 0x77444219da691add},
      {"1F1B(4,2)", one_f_one_b(4, 2), 10, 15, 9, {2, 2, 2, 1}, 0x280eaf1b5b39b339},
      {"CLIP 1F1B M=8", one_f_one_b(kClip, 8), 18, 27, 3, {2, 2, 1}, 0x946ba2f2a8d21aff},
  };
}

TEST_CASE("builders reproduce the published figures", "[scheduler][builders]") {
  for (const Oracle& oracle : oracles()) {
    CAPTURE(oracle.name);
    const Timeline timeline = simulate(oracle.schedule, oracle.schedule.stage_graph());
    CHECK(oracle.schedule.columns() == oracle.columns);
    CHECK(timeline.makespan == oracle.makespan);
    double idle = 0;
    std::vector<int> peaks;
    for (const RowTimeline& row : timeline.rows) {
      idle = std::max(idle, row.idle);
      peaks.push_back(row.peak_in_flight);
    }
    CHECK(idle == oracle.idle);
    CHECK(peaks == oracle.peaks);
    CHECK(fmt::format("{:016x}", schedule_hash(oracle.schedule)) == fmt::format("{:016x}", oracle.hash));
  }
}

TEST_CASE("GPipe's array is the published one", "[scheduler][builders]") {
  CHECK(gpipe(4, 8) == Schedule::parse(R"(
F0 F1 F2 F3 F4 F5 F6 F7 . . . . . . B0 B1 B2 B3 B4 B5 B6 B7
. F0 F1 F2 F3 F4 F5 F6 F7 . . . . B0 B1 B2 B3 B4 B5 B6 B7 .
. . F0 F1 F2 F3 F4 F5 F6 F7 . . B0 B1 B2 B3 B4 B5 B6 B7 . .
. . . F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7 . . .)"));
}

TEST_CASE("GPipe backwards newest first takes as long", "[scheduler][builders]") {
  const Schedule reversed = gpipe(4, 8, {.reverse_backward = true});
  CHECK(reversed.columns() == 22);
  CHECK(to_string(reversed.to_list().rows()[0][8]) == "0B7");
  CHECK(to_string(reversed.to_list().rows()[0][15]) == "0B0");
}

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
  CHECK(gpipe(kClip, 4) == Schedule::parse(R"(
F0 F1 F2 F3 . . B0 B1 B2 B3
F0 F1 F2 F3 . . B0 B1 B2 B3
. F0 F1 F2 F3 B0 B1 B2 B3 .)"));
  CHECK(simulate(one_f_one_b(kClip, 4), kClip).makespan == 15);
  CHECK(simulate(one_f_one_b(3, 4), StageGraph::chain(3)).makespan == 18);
}

TEST_CASE("in-flight counts of a DAG follow its longest way to a sink", "[scheduler][builders]") {
  const StageGraph five = StageGraph::from_edges(5, {{0, 1}, {0, 2}, {1, 3}, {3, 4}, {2, 4}});
  CHECK(in_flight_counts(five) == std::vector{4, 3, 2, 2, 1});
  CHECK(simulate(one_f_one_b(five, 8), five).makespan == 33);
  CHECK(simulate(one_f_one_b(five, 16), five).makespan == 57);
  const StageGraph seven = StageGraph::from_edges(7, {{0, 1}, {1, 2}, {2, 6}, {3, 4}, {4, 6}, {5, 6}});
  CHECK(in_flight_counts(seven) == std::vector{4, 3, 2, 3, 2, 2, 1});
  CHECK(simulate(one_f_one_b(seven, 8), seven).makespan == 33);
  CHECK(simulate(one_f_one_b(seven, 16), seven).makespan == 57);
}

TEST_CASE("builders refuse what they cannot build", "[scheduler][builders]") {
  CHECK_THROWS_AS(gpipe(0, 4), Error);
  CHECK_THROWS_AS(gpipe(4, 0), Error);
  CHECK_THROWS_AS(one_f_one_b(-1, 4), Error);
  CHECK_THROWS_AS(one_f_one_b(2, -3), Error);
  CHECK_THROWS_AS(one_f_one_b(StageGraph::from_edges(2, {{0, 1}, {1, 0}}), 2), Error);
}

}  // namespace
}  // namespace stagecraft
