/// The conformance suite of builders. Every builder of the registry passes it without a line of its
/// own here; a builder with published figures adds a line to published(), and its own test holds
/// what only this builder promises.
#include "stagecraft/scheduler/builders/registry.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/model/hash.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string complaint(std::string_view name, const BuildRequest& request, Errc expected) {
  return refusal([&] { (void)build_schedule(name, request); }, expected);
}

TEST_CASE("schedules are found by name", "[scheduler][registry]") {
  CHECK(build_schedule("1f1b", {.devices = 4, .microbatches = 8}) == one_f_one_b(4, 8));
  CHECK(build_schedule("kfkb", {.devices = 4, .microbatches = 8, .set = {{"k", "2"}}}).columns() ==
        22);
  CHECK(build_schedule("hanayo", {.devices = 4, .microbatches = 8, .set = {{"waves", "2"}}})
            .stages() == 16);
  CHECK(build_schedule("interleaved", {.devices = 4, .microbatches = 8, .chunks = 3}).stages() ==
        12);
  CHECK(build_schedule("dag-1f1b",
                       {.microbatches = 8, .graph = StageGraph::from_edges(3, {{0, 2}, {1, 2}})})
            .columns() == 18);
  CHECK(build_schedule("pfeife",
                       {.devices = 4,
                        .microbatches = 8,
                        .set = {{"loops", "2"}, {"block", "4"}, {"extra", "2,2,1,0"}}})
            .columns() == 38);
}

TEST_CASE("a model's stages say what a schedule of a name is of", "[scheduler][registry]") {
  const StageGraph chain = StageGraph::chain(4);
  CHECK(schedule_for("1f1b", chain, 8) == one_f_one_b(4, 8));
  CHECK(schedule_for("zb-v", chain, 8).rows().size() == 2);
  CHECK(schedule_for("dualpipe", chain, 8).rows().size() == 4);
  CHECK(schedule_for("hanayo", chain, 8).rows().size() == 2);
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    CHECK(Layout::of(schedule_for(builder.name, chain, 8)).model_stages() == 4);
  }
  const StageGraph towers = StageGraph::from_edges(3, {{0, 2}, {1, 2}});
  CHECK(schedule_for("dag-1f1b", towers, 8).columns() == 18);
  const auto refused = [](std::string_view name, int stages, int microbatches, Errc code) {
    return refusal([&] { (void)schedule_for(name, StageGraph::chain(stages), microbatches); },
                   code);
  };
  CHECK_THAT(refused("zb-v", 3, 8, Errc::UsageArgument),
             ContainsSubstring("zb-v expects a model of 2 or 6 stages, found one of 3"));
  CHECK_THAT(refused("dualpipe", 4, 7, Errc::ScheduleParameter),
             ContainsSubstring("even number of microbatches"));
  CHECK_THAT(refused("1f1v", 4, 8, Errc::UsageArgument), ContainsSubstring("did you mean 1f1b?"));
}

TEST_CASE("an unknown name suggests the nearest", "[scheduler][registry]") {
  CHECK_THAT(complaint("gpip", {.devices = 2, .microbatches = 2}, Errc::UsageArgument),
             ContainsSubstring("did you mean gpipe?"));
  CHECK_THAT(complaint("zb_h1", {.devices = 2, .microbatches = 2}, Errc::UsageArgument),
             ContainsSubstring("did you mean zb-h1?"));
  CHECK_THAT(complaint("", {.devices = 2, .microbatches = 2}, Errc::UsageArgument),
             ContainsSubstring("1f1b"));
}

TEST_CASE("unknown parameters and values that are no numbers are refused",
          "[scheduler][registry]") {
  CHECK_THAT(
      complaint(
          "kfkb", {.devices = 2, .microbatches = 2, .set = {{"j", "1"}}}, Errc::UsageArgument),
      ContainsSubstring("it has k"));
  CHECK_THAT(
      complaint(
          "kfkb", {.devices = 2, .microbatches = 2, .set = {{"k", "x"}}}, Errc::UsageArgument),
      ContainsSubstring("whole number"));
  CHECK_THAT(complaint("gpipe",
                       {.devices = 2, .microbatches = 2, .set = {{"reverse_bwd", "7"}}},
                       Errc::UsageArgument),
             ContainsSubstring("0 or 1"));
  CHECK_THAT(
      complaint("hanayo", {.devices = 2, .microbatches = 2, .chunks = 4}, Errc::UsageArgument),
      ContainsSubstring("waves"));
  CHECK_THAT(complaint("dag-1f1b", {.devices = 2, .microbatches = 2}, Errc::UsageArgument),
             ContainsSubstring("stage graph"));
  CHECK_THAT(
      complaint(
          "1f1b",
          {.devices = 3, .microbatches = 2, .graph = StageGraph::from_edges(3, {{0, 2}, {1, 2}})},
          Errc::UsageArgument),
      ContainsSubstring("dag-1f1b"));
}

TEST_CASE("V34: illegal values are answered with the constraint and the nearest legal ones",
          "[scheduler][registry]") {
  struct Case {
    const char* name;
    BuildRequest request;
    const char* constraint;
    const char* nearest;
  };
  const Case cases[] = {
      {"gpipe", {.devices = 0, .microbatches = 2}, "devices >= 1", "nearest: 1"},
      {"1f1b", {.devices = 2, .microbatches = 0}, "microbatches >= 1", "nearest: 1"},
      {"interleaved", {.devices = 4, .microbatches = 9}, "divisible by max(1", "8 or 10"},
      {"interleaved-zb", {.devices = 4, .microbatches = 11}, "divisible by max(1", "10 or 12"},
      {"zb-v", {.devices = 4, .microbatches = 8, .chunks = 3}, "exactly 2 chunks", "nearest: 2"},
      {"dualpipev",
       {.devices = 4, .microbatches = 8, .chunks = 1},
       "exactly 2 chunks",
       "nearest: 2"},
      {"1f1b", {.devices = 4, .microbatches = 8, .chunks = 2}, "exactly 1 chunk", "nearest: 1"},
      {"dualpipe", {.devices = 3, .microbatches = 8}, "even number of devices", "2 or 4"},
      {"dualpipe", {.devices = 4, .microbatches = 9}, "even number of microbatches", "8 or 10"},
      {"dualpipe", {.devices = 4, .microbatches = 6}, "at least 2 x devices", "nearest: 8"},
      {"dualpipev", {.devices = 4, .microbatches = 7}, "2 x devices", "nearest: 8"},
      {"kfkb", {.devices = 4, .microbatches = 8, .set = {{"k", "3"}}}, "divisible by k", "2 or 4"},
      {"chimera", {.devices = 5, .microbatches = 10}, "even number of devices", "4 or 6"},
      {"chimera",
       {.devices = 4, .microbatches = 6},
       "divisible by the number of devices",
       "4 or 8"},
      {"hanayo",
       {.devices = 4, .microbatches = 3},
       "divisible by the number of devices",
       "nearest: 4"},
      {"hanayo",
       {.devices = 4, .microbatches = 4, .set = {{"waves", "0"}}},
       "waves >= 1",
       "nearest: 1"},
      {"pfeife",
       {.devices = 4, .microbatches = 8, .set = {{"block", "3"}}},
       "divides the microbatches",
       "2 or 4"},
      {"pfeife",
       {.devices = 4, .microbatches = 8, .set = {{"extra", "1,2"}}},
       "each of 4 devices",
       "extra=0,0,0,0"},
      {"pfeife",
       {.devices = 4, .microbatches = 8, .set = {{"extra", "0,3,0,0"}}},
       "do not grow",
       "extra=0,1,0,0"},
      {"dag-1f1b",
       {.devices = 2, .microbatches = 2, .graph = StageGraph::chain(3)},
       "one device per stage",
       "nearest: 3"},
      {"gpipe", {.devices = 60000, .microbatches = 60000}, "smaller numbers", "cells"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name, c.constraint);
    CHECK_THAT(complaint(c.name, c.request, Errc::ScheduleParameter),
               ContainsSubstring(c.constraint) && ContainsSubstring(c.nearest));
  }
}

/// Returns the request for a schedule that every builder can make.
BuildRequest any_request(const BuilderInfo& builder) {
  BuildRequest request{.devices = 4, .microbatches = 8};
  if (builder.takes_graph) {
    request.graph = StageGraph::chain(4);
  }
  return request;
}

TEST_CASE("every builder has a name, a summary and parameters of its own",
          "[scheduler][registry]") {
  std::set<std::string_view> names;
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    CHECK(names.insert(builder.name).second);
    CHECK(&find_builder(builder.name) == &builder);
    CHECK_FALSE(builder.summary.empty());
    std::set<std::string_view> parameters;
    for (const BuilderParameter& parameter : builder.parameters) {
      CHECK(parameters.insert(parameter.name).second);
      CHECK_FALSE(parameter.meaning.empty());
    }
  }
}

TEST_CASE("every builder makes equal schedules for equal requests", "[scheduler][registry]") {
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const BuildRequest request = any_request(builder);
    const Schedule schedule = build_schedule(builder.name, request);
    CHECK(schedule == build_schedule(builder.name, request));
    CHECK(schedule.form() == Schedule::Form::Array);
    CHECK(schedule.rows().size() == 4);
  }
}

TEST_CASE("every builder refuses what it does not take", "[scheduler][registry][bad-input]") {
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const std::string name(builder.name);
    const auto refused = [&](auto&& change, Errc code) {
      BuildRequest request = any_request(builder);
      change(request);
      return complaint(name, request, code);
    };
    CHECK_THAT(refused([](BuildRequest& r) { r.microbatches = 0; }, Errc::ScheduleParameter),
               ContainsSubstring(" needs microbatches >= 1, got 0; nearest: 1"));
    CHECK_THAT(refused([](BuildRequest& r) { r.microbatches = 1 << 30; }, Errc::ScheduleParameter),
               ContainsSubstring("use smaller numbers"));
    CHECK_THAT(refused([](BuildRequest& r) { r.set["no_such"] = "1"; }, Errc::UsageArgument),
               ContainsSubstring(name + " has no parameter 'no_such'"));
    for (const BuilderParameter& parameter : builder.parameters) {
      CHECK_THAT(refused([&](BuildRequest& r) { r.set[std::string(parameter.name)] = "x"; },
                         Errc::UsageArgument),
                 ContainsSubstring("parameter " + std::string(parameter.name) + " needs"));
    }
    if (!builder.takes_costs) {
      CHECK_THAT(refused([](BuildRequest& r) { r.costs = Costs(); }, Errc::UsageArgument),
                 ContainsSubstring(name + " ignores costs"));
    }
    if (builder.takes_graph) {
      CHECK_THAT(refused([](BuildRequest& r) { r.graph.reset(); }, Errc::UsageArgument),
                 ContainsSubstring(name + " needs a stage graph"));
      CHECK_THAT(refused(
                     [](BuildRequest& r) {
                       r.graph = StageGraph::from_edges(4, {{0, 1}, {1, 0}});
                     },
                     Errc::ScheduleParameter),
                 ContainsSubstring("without a cycle"));
    } else {
      CHECK_THAT(refused([](BuildRequest& r) { r.devices = 0; }, Errc::ScheduleParameter),
                 ContainsSubstring(name + " needs devices >= 1, got 0; nearest: 1"));
      CHECK_THAT(refused(
                     [](BuildRequest& r) {
                       r.graph = StageGraph::from_edges(4, {{0, 3}});
                     },
                     Errc::UsageArgument),
                 ContainsSubstring("takes no stage graph"));
    }
    if (builder.chunks != ChunkRule::Open) {
      const Errc code =
          builder.chunks == ChunkRule::ByParameter ? Errc::UsageArgument : Errc::ScheduleParameter;
      CHECK_THAT(refused([](BuildRequest& r) { r.chunks = 5; }, code), ContainsSubstring("chunk"));
    }
  }
}

TEST_CASE("every builder makes valid schedules for all legal parameters",
          "[scheduler][registry][property]") {
  int built = 0;
  for (const BuilderInfo& builder : builders()) {
    for (int devices = 1; devices <= 8; ++devices) {
      for (int microbatches = 1; microbatches <= 24; ++microbatches) {
        for (int v = 1;
             v <= (builder.chunks == ChunkRule::Open || !builder.parameters.empty() ? 4 : 1);
             ++v) {
          BuildRequest request{.devices = devices, .microbatches = microbatches};
          if (builder.chunks == ChunkRule::Open) {
            request.chunks = v;
          } else if (!builder.parameters.empty()) {
            const std::string name(builder.parameters.front().name);
            request.set[name] = std::to_string(name == "reverse_bwd" ? v % 2 : v);
          }
          if (builder.takes_graph) {
            request.graph = StageGraph::chain(devices);
          }
          CAPTURE(builder.name, devices, microbatches, v);
          try {
            const Schedule schedule = build_schedule(builder.name, request);
            const StageGraph graph = schedule.stage_graph();
            REQUIRE(validate(schedule, graph, {.microbatches = microbatches, .devices = devices})
                        .empty());
            REQUIRE(validate(schedule.to_list(), graph).empty());
            REQUIRE(schedule.microbatches() == microbatches);
            REQUIRE(to_array(schedule.to_list(), graph).rows() == schedule.rows());  // RW-1
            REQUIRE(Schedule::parse(to_string(schedule)) == schedule);
            ++built;
          } catch (const Error& error) {
            REQUIRE(error.code() == Errc::ScheduleParameter);
            REQUIRE_THAT(error.message(), ContainsSubstring(std::string(builder.name) + " needs"));
          }
        }
      }
    }
  }
  CHECK(built > 5000);
}

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

struct Published {
  std::string_view builder;
  BuildRequest request;
  std::size_t columns;
  double makespan;
  double idle;  ///< of the row that is idle longest
  std::vector<int> peaks;
  std::uint64_t hash;
};

/// Returns the figures of published schedules, from their event simulation with F = I = W = 1 and
/// B = 2.
std::vector<Published> published() {
  return {
      {"gpipe", {.devices = 4, .microbatches = 8}, 22, 33, 9, each(4, 8), 0x1490c2c0a1af78ed},
      {"gpipe", {.devices = 8, .microbatches = 16}, 46, 69, 21, each(8, 16), 0x5d5512f318d722ad},
      {"1f1b", {.devices = 4, .microbatches = 8}, 22, 33, 9, ramp(4, 4, -1), 0xe668f443e2c0cd9d},
      {"1f1b", {.devices = 8, .microbatches = 16}, 46, 69, 21, ramp(8, 8, -1), 0x77444219da691add},
      {"1f1b", {.devices = 4, .microbatches = 2}, 10, 15, 9, {2, 2, 2, 1}, 0x280eaf1b5b39b339},
      {"dag-1f1b",
       {.microbatches = 8, .graph = StageGraph::from_edges(3, {{0, 2}, {1, 2}})},
       18,
       27,
       3,
       {2, 2, 1},
       0x946ba2f2a8d21aff},
      {"interleaved",
       {.devices = 2, .microbatches = 4, .chunks = 2},
       18,
       27,
       3,
       {5, 3},
       0x8dacfdad1a689a19},
      {"interleaved",
       {.devices = 4, .microbatches = 8, .chunks = 2},
       38,
       57,
       9,
       {11, 9, 7, 5},
       0xffb9556a31de1075},
      {"interleaved",
       {.devices = 8, .microbatches = 16, .chunks = 4},
       142,
       213,
       21,
       ramp(8, 39, -2),
       0x8266ceb4918e88bd},
      {"interleaved",
       {.devices = 4, .microbatches = 10, .chunks = 2},
       46,
       69,
       9,
       {12, 10, 8, 6},
       0xd9f37540c41bc80d},
      {"interleaved",
       {.devices = 4, .microbatches = 3, .chunks = 2},
       20,
       30,
       12,
       {6, 6, 6, 4},
       0xbab04719e8d2a7e5},
      {"looped-bfs",
       {.devices = 4, .microbatches = 8, .chunks = 2},
       38,
       57,
       9,
       each(4, 16),
       0x4e74622df929290d},
      {"looped-bfs",
       {.devices = 8, .microbatches = 16, .chunks = 2},
       78,
       117,
       21,
       each(8, 32),
       0x3db745effede3595},
      {"kfkb",
       {.devices = 4, .microbatches = 8, .set = {{"k", "2"}}},
       22,
       33,
       9,
       {8, 6, 4, 2},
       0x833e683dfef2909d},
      {"kfkb",
       {.devices = 8, .microbatches = 16, .set = {{"k", "2"}}},
       46,
       69,
       21,
       ramp(8, 16, -2),
       0x4fba77dfab4b79a5},
      {"zb-h1", {.devices = 4, .microbatches = 8}, 27, 27, 3, each(4, 4), 0x7caa8f85054549dd},
      {"zb-h1", {.devices = 8, .microbatches = 16}, 55, 55, 7, each(8, 8), 0xd1c4720740b332c5},
      {"zb-h1", {.devices = 4, .microbatches = 2}, 11, 11, 5, each(4, 2), 0x8064a330d42bf1a5},
      {"zb-h2", {.devices = 4, .microbatches = 8}, 27, 27, 3, each(4, 7), 0xc0656b431cd047b1},
      {"zb-h2", {.devices = 8, .microbatches = 16}, 55, 55, 7, each(8, 15), 0x4e04b7e5e56069df},
      {"zb-v", {.devices = 4, .microbatches = 8}, 51, 51, 3, each(4, 8), 0xb8cd2aef06f3c7c9},
      {"zb-v", {.devices = 8, .microbatches = 16}, 103, 103, 7, each(8, 16), 0xc780a2669f30ea1b},
      {"zb-v", {.devices = 4, .microbatches = 3}, 26, 26, 8, {4, 5, 6, 6}, 0x01cbd579e24a74f9},
      {"interleaved-zb",
       {.devices = 4, .microbatches = 8, .chunks = 2},
       51,
       51,
       3,
       each(4, 8),
       0x64ac0d182def867d},
      {"interleaved-zb",
       {.devices = 8, .microbatches = 16, .chunks = 2},
       103,
       103,
       7,
       each(8, 16),
       0x42c1f3e4681fbde7},
      {"dualpipe", {.devices = 4, .microbatches = 8}, 16, 26, 2, each(4, 5), 0xd001237a5a61b8e5},
      {"dualpipe", {.devices = 8, .microbatches = 16}, 34, 54, 6, each(8, 9), 0x4c4e7c4a4b344850},
      {"dualpipev", {.devices = 2, .microbatches = 4}, 16, 26, 2, {5, 5}, 0x4e68116e16873062},
      {"dualpipev", {.devices = 4, .microbatches = 8}, 34, 54, 6, each(4, 9), 0xdad7eb7ced872659},
      {"dualpipev",
       {.devices = 8, .microbatches = 16},
       70,
       110,
       14,
       each(8, 17),
       0x2bd58e6baf0ce681},
      {"chimera", {.devices = 4, .microbatches = 8}, 18, 30, 6, {3, 4, 4, 3}, 0xdd951a12f4479c5d},
      {"chimera",
       {.devices = 8, .microbatches = 16},
       38,
       66,
       18,
       {5, 6, 7, 8, 8, 7, 6, 5},
       0xd29a01964888f71b},
      {"hanayo",
       {.devices = 4, .microbatches = 8, .set = {{"waves", "1"}}},
       38,
       66,
       18,
       ramp(4, 5, 1),
       0x4987e05373943a0d},
      {"hanayo",
       {.devices = 4, .microbatches = 8, .set = {{"waves", "2"}}},
       70,
       114,
       18,
       ramp(4, 13, 1),
       0x2849e29122365ac5},
      {"hanayo",
       {.devices = 8, .microbatches = 16, .set = {{"waves", "1"}}},
       78,
       138,
       42,
       ramp(8, 9, 1),
       0x94ec9572d8612069},
      {"pfeife",
       {.devices = 4,
        .microbatches = 8,
        .set = {{"loops", "2"}, {"block", "4"}, {"extra", "2,2,1,0"}}},
       38,
       57,
       9,
       {10, 9, 7, 5},
       0xecf154a83ad04e2d},
      {"pfeife",
       {.devices = 4,
        .microbatches = 8,
        .set = {{"loops", "1"}, {"block", "8"}, {"extra", "3,2,1,0"}}},
       22,
       33,
       9,
       {7, 5, 3, 1},
       0x6f960da346a33c2d},
  };
}

TEST_CASE("builders reproduce the published figures", "[scheduler][registry]") {
  for (const Published& expected : published()) {
    CAPTURE(expected.builder, expected.request.devices, expected.request.microbatches);
    const Schedule schedule = build_schedule(expected.builder, expected.request);
    const Timeline timeline = simulate(schedule, schedule.stage_graph());
    CHECK(schedule.columns() == expected.columns);
    CHECK(timeline.makespan == expected.makespan);
    double idle = 0;
    std::vector<int> peaks;
    for (const RowTimeline& row : timeline.rows) {
      idle = std::max(idle, row.idle);
      peaks.push_back(row.peak_in_flight);
    }
    CHECK(idle == expected.idle);
    CHECK(peaks == expected.peaks);
    CHECK(fmt::format("{:016x}", schedule_hash(schedule)) == fmt::format("{:016x}", expected.hash));
  }
}

}  // namespace
}  // namespace stagecraft
