/// Checks the figures that every builder must reproduce: width, makespan, idle, peak and hash, from
/// the event simulation of the published schedules with F = I = W = 1 and B = 2.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/bidirectional/hanayo.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/interleaved_zb.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/looped_bfs.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h2.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/scheduler/model/hash.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

struct Oracle {
  std::string name;
  Schedule schedule;
  std::size_t columns;
  double makespan;
  double idle;  ///< of the row that is idle longest
  std::vector<int> peaks;
  std::uint64_t hash;
};

std::vector<int> each(int rows, int peak) {
  return std::vector<int>(static_cast<std::size_t>(rows), peak);
}

/// Returns from, from + by, ... for `rows` rows.
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
      {"Interleaved(2,4,v2)", interleaved(2, 4, 2), 18, 27, 3, {5, 3}, 0x8dacfdad1a689a19},
      {"Interleaved(4,8,v2)", interleaved(4, 8, 2), 38, 57, 9, {11, 9, 7, 5}, 0xffb9556a31de1075},
      {"Interleaved(8,16,v4)",
       interleaved(8, 16, 4),
       142,
       213,
       21,
       ramp(8, 39, -2),
       0x8266ceb4918e88bd},
      {"Interleaved(4,10,v2)",
       interleaved(4, 10, 2),
       46,
       69,
       9,
       {12, 10, 8, 6},
       0xd9f37540c41bc80d},
      {"Interleaved(4,3,v2)", interleaved(4, 3, 2), 20, 30, 12, {6, 6, 6, 4}, 0xbab04719e8d2a7e5},
      {"LoopedBFS(4,8,v2)", looped_bfs(4, 8, 2), 38, 57, 9, each(4, 16), 0x4e74622df929290d},
      {"LoopedBFS(8,16,v2)", looped_bfs(8, 16, 2), 78, 117, 21, each(8, 32), 0x3db745effede3595},
      {"kFkB(4,8,k2)", kfkb(4, 8, 2), 22, 33, 9, {8, 6, 4, 2}, 0x833e683dfef2909d},
      {"kFkB(8,16,k2)", kfkb(8, 16, 2), 46, 69, 21, ramp(8, 16, -2), 0x4fba77dfab4b79a5},
      {"ZB-H1(4,8)", zb_h1(4, 8), 27, 27, 3, each(4, 4), 0x7caa8f85054549dd},
      {"ZB-H1(8,16)", zb_h1(8, 16), 55, 55, 7, each(8, 8), 0xd1c4720740b332c5},
      {"ZB-H1(4,2)", zb_h1(4, 2), 11, 11, 5, each(4, 2), 0x8064a330d42bf1a5},
      {"ZB-H2(4,8)", zb_h2(4, 8), 27, 27, 3, each(4, 7), 0xc0656b431cd047b1},
      {"ZB-H2(8,16)", zb_h2(8, 16), 55, 55, 7, each(8, 15), 0x4e04b7e5e56069df},
      {"ZB-V(4,8)", zb_v(4, 8), 51, 51, 3, each(4, 8), 0xb8cd2aef06f3c7c9},
      {"ZB-V(8,16)", zb_v(8, 16), 103, 103, 7, each(8, 16), 0xc780a2669f30ea1b},
      {"ZB-V(4,3)", zb_v(4, 3), 26, 26, 8, {4, 5, 6, 6}, 0x01cbd579e24a74f9},
      {"InterleavedZB(4,8,v2)", interleaved_zb(4, 8, 2), 51, 51, 3, each(4, 8), 0x64ac0d182def867d},
      {"InterleavedZB(8,16,v2)",
       interleaved_zb(8, 16, 2),
       103,
       103,
       7,
       each(8, 16),
       0x42c1f3e4681fbde7},
      {"DualPipe(4,8)", dualpipe(4, 8), 16, 26, 2, each(4, 5), 0xd001237a5a61b8e5},
      {"DualPipe(8,16)", dualpipe(8, 16), 34, 54, 6, each(8, 9), 0x4c4e7c4a4b344850},
      {"DualPipeV(2,4)", dualpipev(2, 4), 16, 26, 2, {5, 5}, 0x4e68116e16873062},
      {"DualPipeV(4,8)", dualpipev(4, 8), 34, 54, 6, each(4, 9), 0xdad7eb7ced872659},
      {"DualPipeV(8,16)", dualpipev(8, 16), 70, 110, 14, each(8, 17), 0x2bd58e6baf0ce681},
      {"Chimera(4,8)", chimera(4, 8), 18, 30, 6, {3, 4, 4, 3}, 0xdd951a12f4479c5d},
      {"Chimera(8,16)", chimera(8, 16), 38, 66, 18, {5, 6, 7, 8, 8, 7, 6, 5}, 0xd29a01964888f71b},
      {"Hanayo(4,8,W1)", hanayo(4, 8, 1), 38, 66, 18, ramp(4, 5, 1), 0x4987e05373943a0d},
      {"Hanayo(4,8,W2)", hanayo(4, 8, 2), 70, 114, 18, ramp(4, 13, 1), 0x2849e29122365ac5},
      {"Hanayo(8,16,W1)", hanayo(8, 16, 1), 78, 138, 42, ramp(8, 9, 1), 0x94ec9572d8612069},
      {"Pfeife(4;8,2,4,(2,2,1,0))",
       pfeife(4, 8, {2, 4, {2, 2, 1, 0}}),
       38,
       57,
       9,
       {10, 9, 7, 5},
       0xecf154a83ad04e2d},
      {"Pfeife(4;8,1,8,(3,2,1,0))",
       pfeife(4, 8, {1, 8, {3, 2, 1, 0}}),
       22,
       33,
       9,
       {7, 5, 3, 1},
       0x6f960da346a33c2d},
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
    CHECK(validate(oracle.schedule, oracle.schedule.stage_graph()).empty());
    CHECK(fmt::format("{:016x}", schedule_hash(oracle.schedule)) ==
          fmt::format("{:016x}", oracle.hash));
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
  const StageGraph seven =
      StageGraph::from_edges(7, {{0, 1}, {1, 2}, {2, 6}, {3, 4}, {4, 6}, {5, 6}});
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

std::vector<double> span_idle(const Schedule& schedule, const Costs& costs) {
  std::vector<double> list;
  for (const RowTimeline& row : simulate(schedule, schedule.stage_graph(), costs).rows) {
    list.push_back(row.span_idle);
  }
  return list;
}

double worst_idle(const Timeline& timeline) {
  double worst = 0;
  for (const RowTimeline& row : timeline.rows) {
    worst = std::max(worst, row.idle);
  }
  return worst;
}

TEST_CASE("unequal durations leave the published idle times", "[scheduler][builders]") {
  const Costs costs{
      .stages = {
          .usual = {.forward = 4, .backward = 8, .backward_input = 5, .backward_weight = 3}}};
  const Schedule h1 = zb_h1(4, 12);
  CHECK(span_idle(h1, costs) == std::vector<double>{18, 12, 6, 0});
  for (const RowTimeline& row : simulate(h1, h1.stage_graph(), costs).rows) {
    CHECK(row.idle == 18);
  }
  const Schedule looped = interleaved_zb(4, 12, 2);
  for (const RowTimeline& row : simulate(looped, looped.stage_graph(), costs).rows) {
    CHECK(row.idle == 18);
  }
  const Schedule h2 = zb_h2(4, 12);
  CHECK(span_idle(h2, costs) == std::vector<double>{9, 6, 3, 0});
  CHECK(worst_idle(simulate(h2, h2.stage_graph(), costs)) == 12);
  const Schedule plain = one_f_one_b(4, 12);
  CHECK(simulate(plain, plain.stage_graph(), costs).rows[0].idle == 36);

  const Costs equal{.stages = {.usual = {.forward = 3, .backward_input = 3, .backward_weight = 2}}};
  CHECK(span_idle(zb_v(4, 12), equal) == std::vector<double>{6, 4, 2, 0});
  const Costs unequal{
      .stages = {.usual = {.forward = 2, .backward_input = 3, .backward_weight = 2}}};
  CHECK(span_idle(zb_v(4, 12), unequal) == std::vector<double>{6, 5, 4, 3});
}

TEST_CASE("overlap groups shorter than their members shorten both DualPipes",
          "[scheduler][builders]") {
  for (const Schedule& schedule : {dualpipe(8, 16), dualpipev(4, 8)}) {
    const StageGraph graph = schedule.stage_graph();
    const Timeline some = simulate(schedule, graph, {.stages = {.group = 2.5}});
    CHECK(some.makespan == 49);
    CHECK(worst_idle(some) == 4.5);
    const Timeline most = simulate(schedule, graph, {.stages = {.group = 2.0}});
    CHECK(most.makespan == 44);
    CHECK(worst_idle(most) == 3);
  }
}

TEST_CASE("members of one family meet where they should", "[scheduler][builders]") {
  CHECK(kfkb(4, 8, 1) == one_f_one_b(4, 8));
  CHECK(kfkb(4, 8, 8) == gpipe(4, 8));
  CHECK(interleaved_zb(4, 8, 1) == zb_h1(4, 8));
  CHECK(pfeife(4, 8, {1, 8, {4, 5, 6, 7}}) == gpipe(4, 8));
  CHECK(pfeife(4, 6) == one_f_one_b(4, 6));
  CHECK(pfeife(4, 8, {2, 4, {3, 2, 1, 0}}) == interleaved(4, 8, 2));
  CHECK(pfeife(4, 8, {4, 8, {4, 5, 6, 7}}) == looped_bfs(4, 8, 4));
  CHECK(one_f_one_b(StageGraph::chain(5), 7) == one_f_one_b(5, 7));
}

TEST_CASE("replicas count their own microbatches", "[scheduler][builders]") {
  const Schedule both_ways = dualpipe(4, 8);
  CHECK(both_ways.stages() == 8);
  CHECK(both_ways.microbatches() == 8);
  CHECK(both_ways.stage_graph().replicas() == 2);
  CHECK(chimera(4, 8).microbatches() == 8);
}

}  // namespace
}  // namespace stagecraft
