#include "stagecraft/scheduler/planners/graphpipe/tree/series_parallel.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <tuple>

namespace stagecraft::graphpipe {
namespace {

constexpr std::size_t kAllCuts = 12;  // up to this many operators, every cut is tried
constexpr std::size_t kMostCuts = 512;

/// A part of the graph; operators are named by their place in `ops`.
struct Part {
  std::vector<int> ops;  ///< ascending
  Edges edges;
};

/// Returns the places in `in` as a part of their own.
Part part_of(const Part& whole, const std::vector<char>& in) {
  Part made;
  std::vector<int> place(whole.ops.size(), -1);
  for (std::size_t i = 0; i < whole.ops.size(); ++i) {
    if (in[i] != 0) {
      place[i] = static_cast<int>(made.ops.size());
      made.ops.push_back(whole.ops[i]);
    }
  }
  for (const auto& [from, to] : whole.edges) {
    if (place[at(from)] >= 0 && place[at(to)] >= 0) {
      made.edges.emplace_back(place[at(from)], place[at(to)]);
    }
  }
  return made;
}

std::vector<Part> components_of(const Part& part) {
  std::vector<int> leader(part.ops.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](int i) {
    while (leader[at(i)] != i) {
      i = leader[at(i)] = leader[at(leader[at(i)])];
    }
    return i;
  };
  for (const auto& [from, to] : part.edges) {
    const int a = find(from);
    const int b = find(to);
    leader[at(std::max(a, b))] = std::min(a, b);
  }
  std::vector<Part> found;
  for (int i = 0; i < static_cast<int>(part.ops.size()); ++i) {
    if (find(i) == i) {
      std::vector<char> in(part.ops.size());
      for (int j = i; j < static_cast<int>(part.ops.size()); ++j) {
        in[at(j)] = static_cast<char>(find(j) == i);
      }
      found.push_back(part_of(part, in));
    }
  }
  return found;
}

/// The longest paths to and from every place, and the places above each.
struct Paths {
  std::vector<double> until, from;       ///< the place itself included
  std::vector<int> depth, height;        ///< in edges, from a source and to a sink
  std::vector<std::vector<char>> above;  ///< by place, itself included
};

Paths paths_of(const Part& part, std::span<const double> times) {
  const std::size_t n = part.ops.size();
  Paths paths{std::vector<double>(n),
              std::vector<double>(n),
              std::vector<int>(n),
              std::vector<int>(n),
              std::vector<std::vector<char>>(n, std::vector<char>(n))};
  Edges edges = part.edges;
  std::ranges::sort(edges, {}, [](const auto& e) { return std::pair(e.second, e.first); });
  auto next = edges.begin();
  for (std::size_t i = 0; i < n; ++i) {
    paths.above[i][i] = 1;
    for (; next != edges.end() && at(next->second) == i; ++next) {
      const std::size_t p = at(next->first);
      paths.until[i] = std::max(paths.until[i], paths.until[p]);
      paths.depth[i] = std::max(paths.depth[i], paths.depth[p] + 1);
      std::ranges::transform(
          paths.above[i], paths.above[p], paths.above[i].begin(), std::bit_or<>());
    }
    paths.until[i] += times[at(part.ops[i])];
  }
  std::ranges::sort(edges);
  for (std::size_t i = n; i-- > 0;) {
    for (; !edges.empty() && at(edges.back().first) == i; edges.pop_back()) {
      const std::size_t c = at(edges.back().second);
      paths.from[i] = std::max(paths.from[i], paths.from[c]);
      paths.height[i] = std::max(paths.height[i], paths.height[c] + 1);
    }
    paths.from[i] += times[at(part.ops[i])];
  }
  return paths;
}

/// Sets of places that contain all places above their members; neither empty nor everything.
using Cuts = std::set<std::vector<char>>;

Cuts all_cuts(const Part& part) {
  Cuts cuts;
  const std::size_t n = part.ops.size();
  for (std::uint32_t set = 1; set + 1 < std::uint32_t{1} << n; ++set) {
    std::vector<char> in(n);
    for (std::size_t i = 0; i < n; ++i) {
      in[i] = static_cast<char>(set >> i & 1);
    }
    const bool closed = std::ranges::all_of(
        part.edges, [&](const auto& e) { return in[at(e.first)] >= in[at(e.second)]; });
    if (closed) {
      cuts.insert(std::move(in));
    }
  }
  return cuts;
}

/// Returns the cuts after every level from the top and from the bottom, after all places above a
/// place, and before all below it.
Cuts usual_cuts(const Paths& paths) {
  const std::size_t n = paths.until.size();
  Cuts cuts;
  const auto add = [&](const auto& is_in) {
    std::vector<char> in(n);
    for (std::size_t i = 0; i < n; ++i) {
      in[i] = static_cast<char>(is_in(i));
    }
    if (std::ranges::count(in, 1) % static_cast<std::ptrdiff_t>(n) != 0) {
      cuts.insert(std::move(in));
    }
  };
  const std::size_t stride = (4 * n + kMostCuts - 1) / kMostCuts;
  for (std::size_t c = 0; c < n; c += stride) {
    const int level = static_cast<int>(c);
    add([&](std::size_t i) { return paths.depth[i] <= level; });
    add([&](std::size_t i) { return paths.height[i] > level; });
    add([&](std::size_t i) { return paths.above[c][i] != 0; });
    add([&](std::size_t i) { return paths.above[i][c] == 0; });
  }
  return cuts;
}

/// The sum of the longest paths above and below, the number of added dependencies, and the cut.
using RatedCut = std::tuple<double, std::size_t, std::vector<char>>;

RatedCut rate(const std::vector<char>& in, const Paths& paths) {
  double above = 0;
  double below = 0;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i] != 0) {
      above = std::max(above, paths.until[i]);
      continue;
    }
    below = std::max(below, paths.from[i]);
    for (std::size_t j = 0; j < in.size(); ++j) {
      pairs += static_cast<std::size_t>(in[j] != 0 && paths.above[i][j] == 0);
    }
  }
  return {above + below, pairs, in};
}

std::vector<char> best_cut(const Part& part, std::span<const double> times) {
  const Paths paths = paths_of(part, times);
  const Cuts cuts = part.ops.size() <= kAllCuts ? all_cuts(part) : usual_cuts(paths);
  RatedCut best = rate(*cuts.begin(), paths);
  for (const std::vector<char>& cut : cuts) {
    best = std::min(best, rate(cut, paths));
  }
  return std::get<2>(std::move(best));
}

/// Adds the tree `made` of the part to the whole tree.
int graft(SpTree& tree, const SpTree& made, int node, const Part& part) {
  const SpTree::Node& seen = made.at(node);
  if (seen.kind == SpTree::Kind::Leaf) {
    return tree.add_leaf(part.ops[at(seen.op)]);
  }
  std::vector<int> children;
  for (const int child : seen.children) {
    children.push_back(graft(tree, made, child, part));
  }
  return tree.add(seen.kind, children);
}

int add_part(SpTree& tree, const Part& part, std::span<const double> times) {
  if (const auto made = sp_tree_of(static_cast<int>(part.ops.size()), part.edges)) {
    return graft(tree, *made, made->root, part);
  }
  std::vector<int> children;
  const std::vector<Part> components = components_of(part);
  if (components.size() > 1) {
    for (const Part& component : components) {
      children.push_back(add_part(tree, component, times));
    }
    return tree.add(SpTree::Kind::Parallel, children);
  }
  std::vector<char> in = best_cut(part, times);
  children.push_back(add_part(tree, part_of(part, in), times));
  std::ranges::transform(in, in.begin(), [](char c) { return static_cast<char>(c == 0); });
  children.push_back(add_part(tree, part_of(part, in), times));
  return tree.add(SpTree::Kind::Series, children);
}

}  // namespace

SpTree series_parallel(int operators, const Edges& edges, std::span<const double> times) {
  Part whole{std::vector<int>(at(operators)), reduced_edges(operators, edges)};
  std::iota(whole.ops.begin(), whole.ops.end(), 0);
  SpTree tree;
  tree.root = add_part(tree, whole, times);
  return tree;
}

double critical_path(int operators, const Edges& edges, std::span<const double> times) {
  std::vector<double> until(times.begin(), times.begin() + operators);
  Edges by_consumer = edges;
  std::ranges::sort(by_consumer, {}, [](const auto& e) { return std::pair(e.second, e.first); });
  for (const auto& [from, to] : by_consumer) {
    until[at(to)] = std::max(until[at(to)], until[at(from)] + times[at(to)]);
  }
  return *std::ranges::max_element(until);
}

double critical_path(const SpTree& tree, std::span<const double> times) {
  const auto length = [&](const auto& self, int node) -> double {
    const SpTree::Node& seen = tree.at(node);
    double total = seen.kind == SpTree::Kind::Leaf ? times[at(seen.op)] : 0;
    for (const int child : seen.children) {
      const double part = self(self, child);
      total = seen.kind == SpTree::Kind::Series ? total + part : std::max(total, part);
    }
    return total;
  };
  return length(length, tree.root);
}

}  // namespace stagecraft::graphpipe
