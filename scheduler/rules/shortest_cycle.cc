#include "stagecraft/scheduler/rules/shortest_cycle.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <utility>

namespace stagecraft::rules {
namespace {

constexpr int kNone = -1;

class CycleSearch {
 public:
  CycleSearch(const Digraph& graph, const std::vector<int>& roots);
  std::vector<int> run(std::size_t max_landmarks);

 private:
  void remove(int vertex);
  [[nodiscard]] std::vector<int> any_cycle() const;
  std::size_t search_through(int root);
  [[nodiscard]] int next_root();
  [[nodiscard]] std::vector<int> measure_to(int landmark);
  void forget_landmark();
  /// The length of a cycle that is worth finding.
  [[nodiscard]] int length_limit() const { return static_cast<int>(best_.size()) - 1; }
  /// The least number of edges from `vertex` to `root`, as far as the landmark tells.
  [[nodiscard]] int least_between(int vertex, int root) const {
    const int from_vertex = to_landmark_[index(vertex)];
    return (from_vertex == kNone ? beyond_ : from_vertex) - to_landmark_[index(root)];
  }

  template <class Visit>
  void for_each(const Digraph& edges, int vertex, Visit&& visit) const {
    for (int i = edges.begin[index(vertex)]; i < edges.begin[index(vertex) + 1]; ++i) {
      visit(edges.targets[index(i)]);
    }
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  const Digraph& out_;
  const std::vector<int>& roots_;
  std::size_t given_left_;
  Digraph in_;
  std::vector<int> out_degree_, in_degree_;
  std::vector<bool> alive_;
  std::vector<int> distance_, parent_,
      frontier_;  // of the current search; distances are reset after it
  std::vector<int> best_;
  std::vector<int> undrawn_;
  std::vector<bool> given_;       // by vertex: among the given roots
  std::vector<int> to_landmark_;  // edges to it; kNone where there are beyond_ or more
  std::vector<int> measured_;     // the vertices that are nearer
  int beyond_ = 0;
  std::uint64_t random_ = 1;
  bool draw_ = true;
};

CycleSearch::CycleSearch(const Digraph& graph, const std::vector<int>& roots)
    : out_(graph),
      roots_(roots),
      given_left_(roots.size()),
      out_degree_(index(graph.size()), 0),
      in_degree_(index(graph.size()), 0),
      alive_(index(graph.size()), true),
      distance_(index(graph.size()), kNone),
      parent_(index(graph.size()), kNone),
      given_(index(graph.size()), false),
      to_landmark_(index(graph.size()), kNone) {
  const int n = graph.size();
  for (const int v : roots) {
    given_[index(v)] = true;
  }
  for (int v = 0; v < n; ++v) {
    for_each(out_, v, [&](int to) {
      ++out_degree_[index(v)];
      ++in_degree_[index(to)];
    });
  }
  in_.begin.assign(index(n) + 1, 0);
  for (int v = 0; v < n; ++v) {
    in_.begin[index(v) + 1] = in_.begin[index(v)] + in_degree_[index(v)];
  }
  in_.targets.resize(out_.targets.size());
  std::vector<int> fill(in_.begin.begin(), in_.begin.end() - 1);
  for (int v = 0; v < n; ++v) {
    for_each(out_, v, [&](int to) { in_.targets[index(fill[index(to)]++)] = v; });
  }
  undrawn_.resize(index(n));
  std::iota(undrawn_.begin(), undrawn_.end(), 0);
  for (int v = 0; v < n; ++v) {
    if (alive_[index(v)] && (in_degree_[index(v)] == 0 || out_degree_[index(v)] == 0)) {
      remove(v);
    }
  }
}

/// Removes a vertex and then all that nothing leads to or that lead nowhere: no cycle passes
/// through them.
void CycleSearch::remove(int vertex) {
  std::vector<int> dead{vertex};
  alive_[index(vertex)] = false;
  while (!dead.empty()) {
    const int v = dead.back();
    dead.pop_back();
    const auto lost = [&](std::vector<int>& degree, int other) {
      if (--degree[index(other)] == 0 && alive_[index(other)]) {
        alive_[index(other)] = false;
        dead.push_back(other);
      }
    };
    for_each(out_, v, [&](int to) { lost(in_degree_, to); });
    for_each(in_, v, [&](int from) { lost(out_degree_, from); });
  }
}

/// Whoever is left has somebody before it, so walking backwards must come round.
std::vector<int> CycleSearch::any_cycle() const {
  const auto start = std::ranges::find(alive_, true);
  if (start == alive_.end()) {
    return {};
  }
  std::vector<int> walk;
  std::vector<int> step(alive_.size(), kNone);
  int v = static_cast<int>(start - alive_.begin());
  while (step[index(v)] == kNone) {
    step[index(v)] = static_cast<int>(walk.size());
    walk.push_back(v);
    int before = kNone;
    for_each(in_, v, [&](int from) { before = alive_[index(from)] ? from : before; });
    v = before;
  }
  std::vector<int> cycle(walk.begin() + step[index(v)], walk.end());
  std::ranges::reverse(cycle);
  return cycle;
}

/// Looks for a shorter cycle through `root` and returns how many vertices that took.
std::size_t CycleSearch::search_through(int root) {
  const int limit = length_limit();
  frontier_.assign(1, root);
  distance_[index(root)] = 0;
  int last = kNone;
  for (std::size_t next = 0; next < frontier_.size() && last == kNone; ++next) {
    const int v = frontier_[next];
    if (distance_[index(v)] >= limit) {
      break;  // a cycle from here on would not be shorter
    }
    for_each(out_, v, [&](int to) {
      if (to == root && last == kNone) {
        last = v;
      } else if (alive_[index(to)] && distance_[index(to)] == kNone &&
                 least_between(to, root) <= limit - distance_[index(v)] - 1) {
        distance_[index(to)] = distance_[index(v)] + 1;
        parent_[index(to)] = v;
        frontier_.push_back(to);
      }
    });
  }
  if (last != kNone) {
    best_.clear();
    for (int v = last; v != root; v = parent_[index(v)]) {
      best_.push_back(v);
    }
    best_.push_back(root);
    std::ranges::reverse(best_);
  }
  for (const int v : frontier_) {
    distance_[index(v)] = kNone;
  }
  return frontier_.size();
}

/// By turns a root the caller gave, the last first (others are upstream of it, which is what a
/// landmark is good for), and any vertex: where cycles are long and overlap, a few of those are on
/// all of them. Drawn evenly, and the same each time.
int CycleSearch::next_root() {
  draw_ = !draw_;
  while (!draw_ && given_left_ > 0) {
    const int v = roots_[--given_left_];
    if (alive_[index(v)]) {
      return v;
    }
  }
  while (!undrawn_.empty()) {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    std::swap(undrawn_[(random_ >> 33U) % undrawn_.size()], undrawn_.back());
    const int v = undrawn_.back();
    undrawn_.pop_back();
    if (alive_[index(v)]) {
      return v;
    }
  }
  return kNone;
}

/// Counts the edges from every vertex nearby to `landmark` and returns the roots among the nearest,
/// nearest first, itself before all.
std::vector<int> CycleSearch::measure_to(int landmark) {
  const int near = length_limit() / 2 + 1;
  beyond_ = length_limit() + near;
  measured_.assign(1, landmark);
  to_landmark_[index(landmark)] = 0;
  std::vector<int> roots{landmark};
  const bool any = given_left_ == 0;
  for (std::size_t next = 0; next < measured_.size(); ++next) {
    const int v = measured_[next];
    const int distance = to_landmark_[index(v)];
    if (v != landmark && distance <= near && (any || given_[index(v)])) {
      roots.push_back(v);
    }
    if (distance + 1 >= beyond_) {
      continue;
    }
    for_each(in_, v, [&](int from) {
      if (alive_[index(from)] && to_landmark_[index(from)] == kNone) {
        to_landmark_[index(from)] = distance + 1;
        measured_.push_back(from);
      }
    });
  }
  return roots;
}

void CycleSearch::forget_landmark() {
  for (const int v : measured_) {
    to_landmark_[index(v)] = kNone;
  }
  measured_.clear();
}

std::vector<int> CycleSearch::run(std::size_t max_landmarks) {
  best_ = any_cycle();
  for (std::size_t n = 0; n < max_landmarks; ++n) {
    const int landmark = next_root();
    if (landmark == kNone) {
      break;
    }
    // As long as it pays: the further from the landmark, the less it tells.
    std::size_t cost = 0;
    for (const int root : measure_to(landmark)) {
      if (alive_[index(root)]) {
        cost += search_through(root);
        remove(root);
      }
      if (cost > measured_.size()) {
        break;
      }
    }
    forget_landmark();
  }
  return best_;
}

}  // namespace

Digraph digraph(int size, const std::vector<std::pair<int, int>>& edges) {
  const auto index = [](int i) { return static_cast<std::size_t>(i); };
  std::vector<int> end(index(size) + 1, 0);
  for (const auto& [from, to] : edges) {
    ++end[index(from) + 1];
  }
  std::partial_sum(end.begin(), end.end(), end.begin());
  std::vector<int> targets(edges.size());
  for (const auto& [from, to] : edges) {
    targets[index(end[index(from)]++)] = to;  // afterwards end[v] is where v's targets end
  }
  Digraph graph;
  graph.begin.reserve(index(size) + 1);
  graph.targets.reserve(edges.size());
  auto first = targets.begin();
  for (int v = 0; v < size; ++v) {
    const auto last = targets.begin() + end[index(v)];
    std::sort(first, last);
    std::unique_copy(first, last, std::back_inserter(graph.targets));
    graph.begin.push_back(static_cast<int>(graph.targets.size()));
    first = last;
  }
  return graph;
}

std::vector<int> shortest_cycle(const Digraph& graph,
                                const std::vector<int>& roots,
                                std::size_t max_landmarks) {
  return CycleSearch(graph, roots).run(max_landmarks);
}

}  // namespace stagecraft::rules
