#include "stagecraft/scheduler/planners/capslog/profiling_runs.h"

#include <set>
#include <utility>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns a run of active stages of one size between inactive ones.
ProfilingRun run_of(int before, int count, int size, int rest) {
  ProfilingRun run;
  if (before > 0) {
    run.push_back({.layers = before});
  }
  run.insert(run.end(), static_cast<std::size_t>(count), {.layers = size, .active = true});
  if (rest > 0) {
    run.push_back({.layers = rest});
  }
  return run;
}

TEST_CASE("ten layers on four devices are told by eight runs", "[scheduler][planners]") {
  CHECK(profiling_runs(10, 4) == std::vector{run_of(0, 3, 1, 7),
                                             run_of(3, 2, 1, 5),
                                             run_of(5, 2, 1, 3),
                                             run_of(7, 3, 1, 0),
                                             run_of(0, 3, 2, 4),
                                             run_of(6, 2, 2, 0),
                                             run_of(1, 2, 2, 5),
                                             run_of(5, 2, 2, 1)});
}

TEST_CASE("as many runs as were published", "[scheduler][planners]") {
  CHECK(profiling_runs(25, 8).size() == 8);
  CHECK(profiling_runs(42, 8).size() == 15);
  CHECK(profiling_runs(48, 8).size() == 16);
}

TEST_CASE("every layer runs alone and with the one before it (PRO-1)",
          "[scheduler][planners][property]") {
  for (int layers = 2; layers <= 59; ++layers) {
    for (int devices = 3; devices <= 16; ++devices) {
      CAPTURE(layers, devices);
      std::set<std::pair<int, int>> active;  // first layer, layers
      bool well_formed = true;
      for (const ProfilingRun& run : profiling_runs(layers, devices)) {
        int first = 0;
        for (const ProfiledStage& stage : run) {
          well_formed = well_formed && stage.layers > 0;
          if (stage.active) {
            active.emplace(first, stage.layers);
          }
          first += stage.layers;
        }
        well_formed = well_formed && first == layers && std::ssize(run) <= devices;
      }
      CHECK(well_formed);
      // Each layer has 1, and each but the first has 2; nothing else is built.
      CHECK(std::ssize(active) == 2 * layers - 1);
      for (int layer = 0; layer < layers; ++layer) {
        REQUIRE(active.contains({layer, 1}));
        REQUIRE((layer == 0 || active.contains({layer - 1, 2})));
      }
    }
  }
}

TEST_CASE("one layer is one run; too few devices are refused", "[scheduler][planners]") {
  CHECK(profiling_runs(1, 3) == std::vector<ProfilingRun>{run_of(0, 1, 1, 0)});
  CHECK_THAT(refusal([] { (void)profiling_runs(5, 2); }),
             ContainsSubstring("at least one layer and 3 devices"));
  CHECK_THAT(refusal([] { (void)profiling_runs(0, 4); }), ContainsSubstring("found 0 layers"));
}

}  // namespace
}  // namespace stagecraft
