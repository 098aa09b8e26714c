/// Tests the placement of the operators of a model that is captured again: counterparts, and stages
/// that fit.
#include "stagecraft/compiler/cut/cut_like.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/compiler/cut/counterparts.h"
#include "stagecraft/compiler/cut/stage_choice.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

Graph row_of(const std::vector<int>& names) {
  Graph graph;
  for (const int name : names) {
    graph.nodes.push_back({.name = std::to_string(name)});
  }
  return graph;
}

int longest_common(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::vector<int>> best(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      best[i + 1][j + 1] = a[i] == b[j] ? best[i][j] + 1 : std::max(best[i][j + 1], best[i + 1][j]);
    }
  }
  return best.back().back();
}

TEST_CASE("counterparts are the longest row that two graphs have in common", "[compiler][cut]") {
  std::mt19937 random(3);
  const auto row = [&] {
    std::vector<int> names(random() % 30);
    for (int& name : names) {
      name = static_cast<int>(random() % 6);
    }
    return names;
  };
  for (int i = 0; i < 200; ++i) {
    const std::vector<int> a = row(), b = row();
    CAPTURE(a, b);
    const std::vector<int> found = counterparts(row_of(a), row_of(b));
    int matched = 0, last = kNoCounterpart;
    for (std::size_t n = 0; n < a.size(); ++n) {
      if (found[n] != kNoCounterpart) {
        ++matched;
        CHECK(found[n] > last);
        last = found[n];
        CHECK(a[n] == b.at(static_cast<std::size_t>(last)));
      }
    }
    CHECK(matched == longest_common(a, b));
  }
}

/// Returns which stage leads to which; `pairs` has the edges of a DAG and those that follow from
/// them.
std::vector<StageSet> leads_to(std::size_t stages,
                               const std::vector<std::pair<std::size_t, std::size_t>>& pairs) {
  std::vector<StageSet> result(stages, StageSet(stages, false));
  for (const auto& [from, to] : pairs) {
    result[from][to] = true;
  }
  return result;
}

TEST_CASE("groups get stages along which values can flow, or the group that fits none is named",
          "[compiler][cut]") {
  const std::vector<StageSet> chain = leads_to(3, {{0, 1}, {0, 2}, {1, 2}});
  {
    StageChoice choice(chain, 3);  // 0 -> 1 -> 2, the middle one in stage 1
    choice.feed(0, 1);
    choice.feed(1, 2);
    choice.restrict(1, {false, true, false});
    REQUIRE(choice.narrow() == 3);
    CHECK_FALSE(choice.is_open(0, 2));
    CHECK_FALSE(choice.is_open(2, 0));
    CHECK_FALSE(choice.decide(0, 2));
    CHECK(choice.decide(0, 0));
    CHECK(choice.decide(2, 2));
    CHECK(choice.last_open(1) == 1);
  }
  {
    StageChoice choice(chain, 2);
    choice.feed(0, 1);
    choice.restrict(0, {false, false, true});
    choice.restrict(1, {true, true, false});
    CHECK(choice.narrow() < 2);
  }
  {  // Two towers and a head: what both towers read can be in neither, and decisions are undone.
    StageChoice choice(leads_to(4, {{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}}), 3);
    choice.feed(0, 1);
    choice.feed(0, 2);
    choice.restrict(1, {false, true, false, false});
    choice.restrict(2, {false, false, true, false});
    REQUIRE(choice.narrow() == 3);
    CHECK_FALSE(choice.decide(0, 1));
    CHECK(choice.decide(0, 0));
    CHECK(choice.last_open(1) == 1);
  }
}

}  // namespace
}  // namespace stagecraft
