#include "stagecraft/scheduler/planners/pfeife/cut_search.h"

#include <limits>

#include "stagecraft/scheduler/builders/pfeife.h"
#include "stagecraft/tests/scheduler/planners/chain_costs.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
const std::vector<double> kUnevenTimes{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};

struct Case {
  int devices = 1;
  int microbatches = 1;
  PfeifeOptions set;
  std::vector<int> cuts;  ///< empty: any cuts with this time
  double time = 0;
};

enum class By { All, Beam, Moves };

/// Holds the result of a search, and the time of the usual cut into equal numbers of operators.
struct Found {
  ScoredCut best;
  double even = 0;
};

Found find(const Costs& costs, const Case& c, By by) {
  const WorkGraph graph = WorkGraph::of(costs, 1);
  const OperatorRow row(graph);
  CutCost cost(row, costs.links, pfeife(c.devices, c.microbatches, c.set), kNoLimit);
  std::vector<int> even;
  for (int s = 1; s < cost.stages(); ++s) {
    even.push_back(s * row.size() / cost.stages());
  }
  Found found;
  found.even = cost.step_time(even);
  found.best = by == By::Beam ? beam_from(cost, even)
                              : find_cut(cost, {.all_up_to = by == By::All ? 20'000.0 : 0.0});
  return found;
}

void check(const Costs& costs, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    for (const By by : {By::All, By::Beam, By::Moves}) {
      CAPTURE(c.devices, c.microbatches, c.set.loops, c.set.block, c.set.extra, by);
      const ScoredCut best = find(costs, c, by).best;
      CHECK(best.score.time == c.time);
      CHECK(best.score.excess == 0);
      if (by == By::All && !c.cuts.empty()) {
        CHECK(best.cuts == c.cuts);
      }
    }
  }
}

TEST_CASE("the best cut of equal operators is uneven where forwards are fetched ahead",
          "[scheduler][planners]") {
  const Costs costs = chain_costs(std::vector<double>(15, 1), 0);
  check(costs,
        {{3, 3, {.extra = {0, 0, 0}}, {6, 11}, 72},
         {3, 3, {.extra = {1, 1, 0}}, {5, 11}, 69},
         {3, 4, {.extra = {0, 0, 0}}, {}, 90},
         {3, 4, {.extra = {1, 1, 0}}, {6, 11}, 84},
         {3, 5, {.extra = {0, 0, 0}}, {5, 10}, 105},
         {3, 5, {.extra = {1, 1, 0}}, {6, 11}, 102},
         {3, 5, {.extra = {2, 1, 0}}, {6, 11}, 99},
         {3, 6, {.extra = {0, 0, 0}}, {}, 120},
         {3, 6, {.extra = {2, 1, 0}}, {6, 11}, 114},
         {3, 8, {.extra = {0, 0, 0}}, {}, 150},
         {3, 8, {.extra = {2, 1, 0}}, {6, 11}, 147}});
  const auto even = [&](int microbatches, std::vector<int> extra) {
    return find(costs, {3, microbatches, {.extra = std::move(extra)}}, By::All).even;
  };
  CHECK(even(3, {0, 0, 0}) == 75);
  CHECK(even(4, {0, 0, 0}) == 90);
  CHECK(even(4, {1, 1, 0}) == 90);
  CHECK(even(6, {0, 0, 0}) == 120);
  CHECK(even(8, {0, 0, 0}) == 150);
}

TEST_CASE("the best cut of unequal operators", "[scheduler][planners]") {
  check(chain_costs(kUnevenTimes, 0),
        {{3, 6, {1, 6, {0, 0, 0}}, {6, 9}, 455},
         {3, 6, {1, 6, {2, 1, 0}}, {6, 9}, 414},
         {4, 8, {1, 8, {3, 2, 1, 0}}, {5, 7, 10}, 429},
         {2, 8, {1, 8, {1, 0}}, {7}, 723},
         {2, 4, {2, 2, {0, 0}}, {4, 6, 10}, 359},
         {2, 4, {2, 4, {1, 0}}, {2, 5, 9}, 324}});
}

TEST_CASE("where the beam stops short, moves of two places find the best cut",
          "[scheduler][planners]") {
  const Costs costs = chain_costs(kUnevenTimes, 0);
  const Case loops{2, 4, {3, 4, {1, 0}}};
  const ScoredCut beam = find(costs, loops, By::Beam).best;
  CHECK(beam.score.time == 339);
  CHECK(beam.cuts == std::vector{1, 4, 6, 9, 11});
  CHECK(find(costs, loops, By::All).best.score.time == 324);
  CHECK(find(costs, loops, By::All).best.cuts == std::vector{2, 5, 6, 8, 11});
  CHECK(find(costs, loops, By::Moves).best.score.time == 324);
}

TEST_CASE("links and loops change the best cut", "[scheduler][planners]") {
  Costs costs = chain_costs(std::vector<double>(12, 1), 0);
  for (const auto& [latency, time] : {std::pair(0.0, 85.0), {1.0, 87.0}, {3.0, 91.0}}) {
    costs.links.usual.latency = latency;
    check(costs, {{2, 4, {.extra = {1, 0}}, {7}, time}});
  }
  costs.links.usual.latency = 0;
  check(costs,
        {{3, 6, {.extra = {0, 0, 0}}, {}, 96},
         {3, 6, {.extra = {2, 1, 0}}, {5, 9}, 93},
         {3, 6, {2, 3, {0, 0, 0}}, {}, 84},
         {3, 6, {2, 6, {1, 1, 0}}, {}, 83},
         {3, 6, {2, 6, {2, 1, 0}}, {1, 3, 5, 8, 10}, 81}});
}

TEST_CASE("moves keep their neighbors or their proportions", "[scheduler][planners]") {
  std::vector<int> cuts{5, 10};
  move_proportionally(cuts, 0, 1, 15);
  CHECK(cuts == std::vector{6, 11});  // gaps 6, 4.5, 4.5
  cuts = {5, 10};
  move_proportionally(cuts, 1, 2, 15);
  CHECK(cuts == std::vector{6, 12});
  cuts = {5, 10};
  move_single(cuts, 1, -3);
  CHECK(cuts == std::vector{5, 7});
  CHECK(is_cut(cuts, 15, 2));
  CHECK_FALSE(is_cut(cuts, 15, 3));
  CHECK_FALSE(is_cut(std::vector{5, 5}, 15, 1));
  CHECK_FALSE(is_cut(std::vector{5, 15}, 15, 1));
}

TEST_CASE("the best cut that fits the memory, from starts that do not", "[scheduler][planners]") {
  Costs costs = chain_costs(std::vector<double>(60, 1), 0);
  for (int i = 0; i < 60; ++i) {
    costs.operators[static_cast<std::size_t>(i)].kept = i < 6 ? 100 : 1;
  }
  const WorkGraph graph = WorkGraph::of(costs, 1);
  const OperatorRow row(graph);
  const Schedule schedule = pfeife(4, 4);
  CutCost free(row, costs.links, schedule, kNoLimit);
  const ScoredCut fastest = find_cut(free);
  const double most = free.peak(fastest.cuts).bytes;
  CutCost tight(row, costs.links, schedule, most * 0.7);
  const ScoredCut all = find_cut(tight, {.all_up_to = 1e6});
  CHECK(all.score.excess == 0);
  CHECK(tight.peak(all.cuts).bytes <= most * 0.7);
  CHECK(all.score.time > fastest.score.time);
  CHECK(find_cut(tight, {.all_up_to = 0}).score.time == all.score.time);
  CutCost hopeless(row, costs.links, schedule, 10);
  CHECK(find_cut(hopeless).score.excess > 0);
}

TEST_CASE("a model of one stage has one cut", "[scheduler][planners]") {
  const Case alone{1, 4, {}, {}, 180};
  CHECK(find(chain_costs(std::vector<double>(15, 1)), alone, By::All).best.score.time == 180);
}

TEST_CASE("more operators than can all be tried: never worse than the beam",
          "[scheduler][planners]") {
  std::vector<double> forwards;
  for (int i = 0; i < 120; ++i) {
    forwards.push_back(1 + (i * 7919) % 23);
  }
  const Costs costs = chain_costs(forwards, 0);
  for (const PfeifeOptions& set :
       {PfeifeOptions{1, 8, {3, 2, 1, 0}}, {2, 4, {0, 0, 0, 0}}, {3, 8, {1, 1, 1, 0}}}) {
    const Case c{4, 8, set};
    CHECK(find(costs, c, By::Moves).best.score.time <= find(costs, c, By::Beam).best.score.time);
  }
}

}  // namespace
}  // namespace stagecraft
