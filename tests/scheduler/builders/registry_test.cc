#include "stagecraft/scheduler/builders/registry.h"

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
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
          try {
            const Schedule schedule = build_schedule(builder.name, request);
            const StageGraph graph = schedule.stage_graph();
            INFO(builder.name << " P=" << devices << " M=" << microbatches << " v=" << v);
            REQUIRE(validate(schedule, graph, {.microbatches = microbatches, .devices = devices})
                        .empty());
            REQUIRE(validate(schedule.to_list(), graph).empty());
            REQUIRE(schedule.microbatches() == microbatches);
            REQUIRE(Schedule::parse(to_string(schedule)) == schedule);
            ++built;
          } catch (const Error& error) {
            REQUIRE(error.code() == Errc::ScheduleParameter);
          }
        }
      }
    }
  }
  CHECK(built > 5000);
}

}  // namespace
}  // namespace stagecraft
