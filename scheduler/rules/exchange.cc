#include "stagecraft/scheduler/rules/exchange.h"

#include <algorithm>
#include <utility>

namespace stagecraft::rules {
namespace {

constexpr std::size_t kMaxCellsLookedAt = 5'000'000;

/// Pairs of entries in the order they are tried, at most `limit` of them.
std::vector<Exchange> candidates(const Input& in,
                                 const std::vector<int>& cycle,
                                 std::size_t limit) {
  std::vector<bool> on_cycle(in.tasks.entries().size(), false);
  for (const int e : cycle) {
    on_cycle[static_cast<std::size_t>(e)] = true;
  }
  std::vector<int> sorted = cycle;
  std::ranges::sort(sorted);
  std::vector<Exchange> list;
  for (const bool both : {true, false}) {
    int longest = 0;
    for (int row = 0; row < in.tasks.rows(); ++row) {
      longest = std::max(longest, in.tasks.row_end(row) - in.tasks.row_begin(row));
    }
    for (int distance = 1; distance < longest && list.size() < limit; ++distance) {
      for (const int e : sorted) {
        const int row = in.tasks.entry(e).row;
        const int begin = in.tasks.row_begin(row);
        if (e + distance < in.tasks.row_end(row) &&
            on_cycle[static_cast<std::size_t>(e + distance)] == both) {
          list.push_back({row, e - begin, e + distance - begin});
        }
        if (!both && e - distance >= begin && !on_cycle[static_cast<std::size_t>(e - distance)]) {
          list.push_back({row, e - distance - begin, e - begin});
        }
      }
    }
  }
  list.resize(std::min(list.size(), limit));
  return list;
}

bool runs(const Input& in, const std::vector<Schedule::Row>& rows) {
  const TaskGraph tasks(rows, in.graph, in.tasks.microbatches() * in.graph.replicas());
  return tasks.walk([](int) {}) == tasks.entries().size();
}

}  // namespace

std::optional<Exchange> find_exchange(const Input& in, const std::vector<int>& cycle) {
  const std::size_t cells = in.tasks.entries().size();
  std::vector<Schedule::Row> rows = in.schedule.rows();
  for (const Exchange& exchange : candidates(in, cycle, kMaxCellsLookedAt / cells + 1)) {
    Schedule::Row& row = rows[static_cast<std::size_t>(exchange.row)];
    Cell& first = row[static_cast<std::size_t>(exchange.first)];
    Cell& second = row[static_cast<std::size_t>(exchange.second)];
    std::swap(first, second);
    if (runs(in, rows)) {
      return exchange;
    }
    std::swap(first, second);
  }
  return std::nullopt;
}

}  // namespace stagecraft::rules
