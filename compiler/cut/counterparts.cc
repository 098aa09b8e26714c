#include "stagecraft/compiler/cut/counterparts.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr int kMostDifferences = 4'000;  ///< bounds the memory of the search to 32 MB

/// Gives equal operators of both graphs equal numbers.
class Numbering {
 public:
  std::vector<int> operator()(const Graph& graph) {
    std::vector<int> numbers;
    for (const Node& node : graph.nodes) {
      std::string text = operator_name(node);
      for (const ValueId read : reads_of(node)) {
        const Value& value = graph.at(read);
        if (value.kind == ValueKind::Parameter || value.kind == ValueKind::Buffer) {
          text +=
              fmt::format("{}{}", value.kind == ValueKind::Parameter ? " w" : " b", value.position);
        }
      }
      numbers.push_back(
          known_.try_emplace(std::move(text), static_cast<int>(known_.size())).first->second);
    }
    return numbers;
  }

 private:
  std::map<std::string, int> known_;
};

/// Reached holds, by number of differences d and by i in 0 .. d, how far into the first sequence
/// the furthest path leads that has d differences and ends on the diagonal 2i - d.
using Reached = std::vector<std::vector<int>>;

/// Entry says where a path with d differences enters the diagonal: after an element that only the
/// first sequence has, or after one that only the second has.
struct Entry {
  int at = 0;  ///< in the first sequence
  bool skips_first = false;
};

Entry entry_of(const Reached& reached, int d, int i) {
  if (d == 0) {
    return {};
  }
  const std::vector<int>& before = reached[static_cast<std::size_t>(d - 1)];
  const auto place = static_cast<std::size_t>(i);
  if (i > 0 && (i == d || before[place - 1] >= before[place])) {
    return {.at = before[place - 1] + 1, .skips_first = true};
  }
  return {.at = before[place]};
}

std::vector<int> matched(const std::vector<int>& a, const std::vector<int>& b) {
  const auto a_size = static_cast<int>(a.size());
  const auto b_size = static_cast<int>(b.size());
  std::vector<int> result(a.size(), kNoCounterpart);
  Reached reached;
  int d = 0;
  const auto leads_to_the_end = [&] {
    std::vector<int>& now = reached.emplace_back();
    for (int i = 0; i <= d; ++i) {
      int x = entry_of(reached, d, i).at;
      int y = x - (2 * i - d);
      while (x < a_size && y < b_size &&
             a[static_cast<std::size_t>(x)] == b[static_cast<std::size_t>(y)]) {
        ++x;
        ++y;
      }
      now.push_back(x);
      if (x >= a_size && y >= b_size) {
        return true;
      }
    }
    return false;
  };
  while (!leads_to_the_end()) {
    if (++d > kMostDifferences) {
      return result;
    }
  }
  int i = (a_size - b_size + d) / 2;
  for (int x = a_size; d >= 0; --d) {
    const Entry entry = entry_of(reached, d, i);
    for (; x > entry.at; --x) {
      result[static_cast<std::size_t>(x - 1)] = x - 1 - (2 * i - d);
    }
    x = entry.at - (entry.skips_first ? 1 : 0);
    i -= entry.skips_first ? 1 : 0;
  }
  return result;
}

}  // namespace

std::vector<int> counterparts(const Graph& graph, const Graph& model) {
  Numbering number;
  const std::vector<int> a = number(graph);
  return matched(a, number(model));
}

}  // namespace stagecraft
