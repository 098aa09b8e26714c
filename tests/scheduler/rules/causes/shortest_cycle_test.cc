#include "stagecraft/scheduler/rules/causes/shortest_cycle.h"

#include <algorithm>
#include <limits>
#include <random>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::rules {
namespace {

constexpr std::size_t kExact = std::numeric_limits<std::size_t>::max();

/// Returns the length of the shortest cycle by powers of reachability; 0 if there is none.
std::size_t brute_force(int size, const std::vector<Edge>& edges) {
  const auto n = static_cast<std::size_t>(size);
  std::vector<std::vector<std::size_t>> far(n, std::vector<std::size_t>(n, kExact / 4));
  for (const auto& [a, b, length] : edges) {
    far[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = length;
  }
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        far[i][j] = std::min(far[i][j], far[i][k] + far[k][j]);
      }
    }
  }
  std::size_t best = kExact / 4;
  for (std::size_t i = 0; i < n; ++i) {
    best = std::min(best, far[i][i]);
  }
  return best == kExact / 4 ? 0 : best;
}

TEST_CASE("a graph without a cycle has none", "[scheduler][deadlock]") {
  CHECK(shortest_cycle(digraph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}), {}, kExact).empty());
  CHECK(shortest_cycle(digraph(0, {}), {}, kExact).empty());
}

TEST_CASE("the smaller of two cycles is returned in order", "[scheduler][deadlock]") {
  const auto cycle = shortest_cycle(
      digraph(7, {{0, 1}, {1, 2}, {2, 3}, {3, 0}, {4, 5}, {5, 6}, {6, 4}}), {}, kExact);
  REQUIRE(cycle.size() == 3);
  CHECK((cycle[0] % 3 + 1) % 3 == cycle[1] % 3);
}

TEST_CASE("the shortest cycle is exact on random graphs", "[scheduler][deadlock]") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int size = 2 + static_cast<int>(random() % 12);
    std::vector<Edge> edges;
    const auto count = random() % 20;
    for (std::size_t e = 0; e < count; ++e) {
      const int from = static_cast<int>(random() % static_cast<unsigned>(size));
      const int to = static_cast<int>(random() % static_cast<unsigned>(size));
      if (from != to && std::ranges::find(edges, Edge{from, to}) == edges.end()) {
        edges.emplace_back(from, to);
      }
    }
    const std::vector<int> roots{static_cast<int>(random() % static_cast<unsigned>(size))};
    const auto cycle = shortest_cycle(digraph(size, edges), roots, kExact);
    REQUIRE(cycle.size() == brute_force(size, edges));
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      REQUIRE(std::ranges::find(edges, Edge{cycle[i], cycle[(i + 1) % cycle.size()]}) !=
              edges.end());
    }
  }
}

TEST_CASE("the shortest cycle is exact among many long ones", "[scheduler][deadlock]") {
  // Draws edges like those of a schedule's rows: chains, edges between them, and edges back over
  // some distance.
  std::mt19937 random(11);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 120; ++round) {
    const int rows = 1 + below(4);
    const int length = 8 + below(22);
    const int back = 2 + below(length - 2);
    std::vector<Edge> edges;
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i + 1 < length; ++i) {
        edges.emplace_back(r * length + i, r * length + i + 1);
      }
    }
    for (int i = below(30); i > 0; --i) {
      const int from = below(length);
      const int to = std::clamp(from - back + below(5), 0, length - 1);
      edges.emplace_back(below(rows) * length + from, below(rows) * length + to);
    }
    std::erase_if(edges, [](const Edge& edge) { return edge.from == edge.to; });
    std::ranges::sort(edges);
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::vector<int> roots;
    for (int i = below(6); i > 0; --i) {
      roots.push_back(below(rows * length));
    }
    const auto cycle = shortest_cycle(digraph(rows * length, edges), roots, kExact);
    CAPTURE(round, rows, length, back);
    REQUIRE(cycle.size() == brute_force(rows * length, edges));
  }
}

TEST_CASE("edges of no length cost nothing", "[scheduler][deadlock]") {
  // A way along a row costs nothing; a shorter way counts each step.
  const std::vector<Edge> edges{{0, 1, 0}, {1, 2, 0}, {2, 3, 0}, {3, 0, 1}, {0, 4, 1}, {4, 0, 1}};
  CHECK(shortest_cycle(digraph(5, edges), {}, kExact).size() == 4);

  // Rows are chains of length zero, and the edges between them count.
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    const int rows = 2 + below(3);
    const int length = 3 + below(12);
    std::vector<Edge> all;
    for (int r = 0; r < rows; ++r) {
      for (int i = 0; i + 1 < length; ++i) {
        all.push_back({r * length + i, r * length + i + 1, 0});
      }
    }
    for (int i = below(16); i > 0; --i) {
      const int from = below(rows), to = (from + 1 + below(rows - 1)) % rows;
      all.push_back({from * length + below(length), to * length + below(length), 1});
    }
    std::vector<int> roots;
    for (int i = below(4); i > 0; --i) {
      roots.push_back(below(rows * length));
    }
    const auto cycle = shortest_cycle(digraph(rows * length, all), roots, kExact);
    std::size_t counted = 0;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const int here = cycle[i], next = cycle[(i + 1) % cycle.size()];
      const auto edge =
          std::ranges::find_if(all, [&](const Edge& e) { return e.from == here && e.to == next; });
      REQUIRE(edge != all.end());
      counted += edge->length;
    }
    CAPTURE(round, rows, length);
    REQUIRE(counted == brute_force(rows * length, all));
  }
}

TEST_CASE("many overlapping long cycles take few searches", "[scheduler][deadlock]") {
  // A line forward and an edge back from each vertex half a line later: every cycle has the same
  // length.
  constexpr int kHalf = 50'000;
  std::vector<Edge> edges;
  for (int v = 0; v + 1 < 2 * kHalf; ++v) {
    edges.emplace_back(v, v + 1);
  }
  for (int v = 0; v < kHalf; ++v) {
    edges.emplace_back(v + kHalf, v);
  }
  CHECK(shortest_cycle(digraph(2 * kHalf, edges), {}, kExact).size() == kHalf + 1);
}

}  // namespace
}  // namespace stagecraft::rules
