#include "stagecraft/scheduler/rules/causes/shortest_cycle.h"

#include <algorithm>
#include <cstdint>
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
  void take_any_cycle();
  std::size_t search_through(int root);
  [[nodiscard]] int next_root();
  [[nodiscard]] std::vector<int> measure_to(int landmark);
  void forget_landmark();
  /// Returns the largest length of a cycle worth finding.
  [[nodiscard]] int length_limit() const { return best_length_ - 1; }
  /// Returns a lower bound of the length from `vertex` to `root`, derived from the landmark.
  [[nodiscard]] int least_between(int vertex, int root) const {
    const int from_vertex = to_landmark_[index(vertex)];
    return (from_vertex == kNone ? beyond_ : from_vertex) - to_landmark_[index(root)];
  }

  template <class Visit>
  void for_each(const Digraph& edges, int vertex, Visit&& visit) const {
    for (int i = edges.begin[index(vertex)]; i < edges.begin[index(vertex) + 1]; ++i) {
      visit(edges.targets[index(i)], edges.lengths[index(i)]);
    }
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  const Digraph& out_;
  const std::vector<int>& roots_;
  std::size_t given_left_;
  Digraph in_;
  std::vector<int> out_degree_, in_degree_;
  std::vector<bool> alive_;
  std::vector<int> distance_, parent_;  // of the current search; distances are reset after it
  std::vector<int> reached_;
  std::vector<int> level_, next_level_;  // vertices at one distance, and at the next
  std::vector<int> best_;
  int best_length_ = 0;
  std::vector<int> undrawn_;
  std::vector<bool> given_;       // by vertex: among the given roots
  std::vector<int> to_landmark_;  // length to it; kNone if it is beyond_ or more
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
    for_each(out_, v, [&](int to, int) {
      ++out_degree_[index(v)];
      ++in_degree_[index(to)];
    });
  }
  in_.begin.assign(index(n) + 1, 0);
  for (int v = 0; v < n; ++v) {
    in_.begin[index(v) + 1] = in_.begin[index(v)] + in_degree_[index(v)];
  }
  in_.targets.resize(out_.targets.size());
  in_.lengths.resize(out_.targets.size());
  std::vector<int> fill(in_.begin.begin(), in_.begin.end() - 1);
  for (int v = 0; v < n; ++v) {
    for_each(out_, v, [&](int to, std::uint8_t length) {
      const auto place = index(fill[index(to)]++);
      in_.targets[place] = v;
      in_.lengths[place] = length;
    });
  }
  undrawn_.resize(index(n));
  std::iota(undrawn_.begin(), undrawn_.end(), 0);
  for (int v = 0; v < n; ++v) {
    if (alive_[index(v)] && (in_degree_[index(v)] == 0 || out_degree_[index(v)] == 0)) {
      remove(v);
    }
  }
}

/// Removes a vertex, and then all vertices without a predecessor or a successor: no cycle passes
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
    for_each(out_, v, [&](int to, int) { lost(in_degree_, to); });
    for_each(in_, v, [&](int from, int) { lost(out_degree_, from); });
  }
}

/// Every remaining vertex has a predecessor, so a walk backwards must repeat a vertex.
void CycleSearch::take_any_cycle() {
  const auto start = std::ranges::find(alive_, true);
  if (start == alive_.end()) {
    return;
  }
  std::vector<int> walk;
  std::vector<int> lengths;  // from the vertex before, because the walk goes backwards
  std::vector<int> step(alive_.size(), kNone);
  int v = static_cast<int>(start - alive_.begin());
  while (step[index(v)] == kNone) {
    step[index(v)] = static_cast<int>(walk.size());
    walk.push_back(v);
    int before = kNone;
    int length = 0;
    for_each(in_, v, [&](int from, int far) {
      if (alive_[index(from)]) {
        before = from;
        length = far;
      }
    });
    v = before;
    lengths.push_back(length);
  }
  best_.assign(walk.begin() + step[index(v)], walk.end());
  std::ranges::reverse(best_);
  best_length_ = std::accumulate(lengths.begin() + step[index(v)], lengths.end(), 0);
}

/// Looks for a shorter cycle through `root`. Returns how many vertices it visited.
std::size_t CycleSearch::search_through(int root) {
  int limit = length_limit();
  int last = kNone;
  reached_.assign(1, root);
  distance_[index(root)] = 0;
  level_.assign(1, root);
  for (int far = 0; far <= limit && !level_.empty(); ++far) {
    while (!level_.empty()) {
      const int v = level_.back();
      level_.pop_back();
      if (distance_[index(v)] < far) {
        continue;  // a shorter path has reached it since
      }
      for_each(out_, v, [&](int to, int length) {
        const int there = far + length;
        if (to == root && there <= limit) {
          last = v;
          limit = there - 1;
          best_length_ = there;
          return;
        }
        int& known = distance_[index(to)];
        if (!alive_[index(to)] || (known != kNone && known <= there) ||
            least_between(to, root) > limit - there) {
          return;
        }
        if (known == kNone) {
          reached_.push_back(to);
        }
        known = there;
        parent_[index(to)] = v;
        (length == 0 ? level_ : next_level_).push_back(to);
      });
    }
    level_.swap(next_level_);
  }
  level_.clear();
  next_level_.clear();
  if (last != kNone) {
    best_.clear();
    for (int v = last; v != root; v = parent_[index(v)]) {
      best_.push_back(v);
    }
    best_.push_back(root);
    std::ranges::reverse(best_);
  }
  for (const int v : reached_) {
    distance_[index(v)] = kNone;
  }
  return reached_.size();
}

/// Returns alternately a root given by the caller and any vertex. It takes the caller's last root
/// first: others are upstream of it, which makes it a good landmark. If cycles are long and
/// overlap, some vertices are on all of them. The draws are even and always the same.
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

/// Measures the length from every nearby vertex to `landmark`. Returns the roots among the nearest
/// vertices, nearest first, after the landmark itself.
std::vector<int> CycleSearch::measure_to(int landmark) {
  const int near = length_limit() / 2 + 1;
  beyond_ = length_limit() + near;
  measured_.assign(1, landmark);
  to_landmark_[index(landmark)] = 0;
  level_.assign(1, landmark);
  std::vector<int> roots{landmark};
  const bool any = given_left_ == 0;
  for (int far = 0; far < beyond_ && !level_.empty(); ++far) {
    for (std::size_t next = 0; next < level_.size(); ++next) {  // level_ grows meanwhile
      const int v = level_[next];
      if (to_landmark_[index(v)] < far) {
        continue;  // a shorter path has reached it since
      }
      if (v != landmark && far <= near && (any || given_[index(v)])) {
        roots.push_back(v);
      }
      for_each(in_, v, [&](int from, int length) {
        int& known = to_landmark_[index(from)];
        const int there = far + length;
        if (!alive_[index(from)] || there >= beyond_ || (known != kNone && known <= there)) {
          return;
        }
        if (known == kNone) {
          measured_.push_back(from);
        }
        known = there;
        (length == 0 ? level_ : next_level_).push_back(from);
      });
    }
    level_.clear();
    level_.swap(next_level_);
  }
  level_.clear();
  return roots;
}

void CycleSearch::forget_landmark() {
  for (const int v : measured_) {
    to_landmark_[index(v)] = kNone;
  }
  measured_.clear();
}

std::vector<int> CycleSearch::run(std::size_t max_landmarks) {
  take_any_cycle();
  for (std::size_t n = 0; n < max_landmarks; ++n) {
    const int landmark = next_root();
    if (landmark == kNone) {
      break;
    }
    // Continue as long as it pays: the further from the landmark, the less it tells.
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

Digraph digraph(int size, const std::vector<Edge>& edges) {
  std::vector<Edge> sorted = edges;
  std::ranges::sort(sorted);  // the shortest edge between two vertices comes first
  const auto joins_the_same = [](const Edge& a, const Edge& b) {
    return a.from == b.from && a.to == b.to;
  };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), joins_the_same), sorted.end());
  Digraph graph;
  graph.begin.assign(static_cast<std::size_t>(size) + 1, 0);
  for (const Edge& edge : sorted) {
    ++graph.begin[static_cast<std::size_t>(edge.from) + 1];
    graph.targets.push_back(edge.to);
    graph.lengths.push_back(edge.length);
  }
  std::partial_sum(graph.begin.begin(), graph.begin.end(), graph.begin.begin());
  return graph;
}

std::vector<int> shortest_cycle(const Digraph& graph,
                                const std::vector<int>& roots,
                                std::size_t max_landmarks) {
  return CycleSearch(graph, roots).run(max_landmarks);
}

}  // namespace stagecraft::rules
