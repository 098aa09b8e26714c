#include "stagecraft/scheduler/builders/pfeife.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/parts/alternating_row.h"
#include "stagecraft/scheduler/builders/parts/row_list.h"

namespace stagecraft {
namespace {

/// Returns stage and microbatch of each forward (or backward) of a row, in order.
std::vector<std::pair<int, int>> block_order(
    int row, int ranks, int microbatches, int loops, int block, bool ascending) {
  std::vector<std::pair<int, int>> order;
  for (int begin = 0; begin < microbatches; begin += block) {
    for (int k = 0; k < loops; ++k) {
      const int loop = ascending ? k : loops - 1 - k;
      for (int m = begin; m < begin + block; ++m) {
        order.emplace_back(loop * ranks + row, m);
      }
    }
  }
  return order;
}

std::vector<int> warm_ups(int ranks, int microbatches, int block, const PfeifeOptions& options) {
  std::vector<int> counts;
  for (int r = 0; r < ranks; ++r) {
    const int extra = options.extra.empty() ? 0 : options.extra[static_cast<std::size_t>(r)];
    counts.push_back(
        std::min((options.loops - 1) * block + (ranks - r) + extra, options.loops * microbatches));
  }
  return counts;
}

void require_feasible(int ranks, const std::vector<int>& extra, const std::vector<int>& counts) {
  if (std::ranges::is_sorted(counts, std::greater<>())) {
    return;
  }
  // Lower each row's extra until its warm-up is no longer than the one above.
  std::vector<int> nearest = extra;
  std::vector<int> lowered = counts;
  for (std::size_t r = 1; r < static_cast<std::size_t>(ranks); ++r) {
    const int excess = std::max(0, lowered[r] - lowered[r - 1]);
    lowered[r] -= excess;
    nearest[r] = std::max(0, nearest[r] - excess);
  }
  throw Error(Errc::ScheduleParameter,
              fmt::format("pfeife needs warm-ups that do not grow from row to row, but extra={} "
                          "gives {} forwards; nearest: extra={}",
                          fmt::join(extra, ","),
                          fmt::join(counts, ","),
                          fmt::join(nearest, ",")));
}

}  // namespace

Schedule pfeife(int ranks, int microbatches, const PfeifeOptions& options) {
  require_positive("pfeife", "devices", ranks);
  require_positive("pfeife", "microbatches", microbatches);
  require_positive("pfeife", "loops", options.loops);
  const int block = options.block == 0 ? microbatches : options.block;
  require_positive("pfeife", "block", block);
  require_legal("pfeife", "a block that divides the microbatches", "block", block, [&](int b) {
    return b <= microbatches && microbatches % b == 0;
  });
  if (!options.extra.empty() && (options.extra.size() != static_cast<std::size_t>(ranks) ||
                                 std::ranges::any_of(options.extra, [](int e) { return e < 0; }))) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("pfeife needs one extra of 0 or more for each of {} devices, got "
                            "extra={}; e.g. extra={}",
                            ranks,
                            fmt::join(options.extra, ","),
                            fmt::join(std::vector<int>(static_cast<std::size_t>(ranks), 0), ",")));
  }
  const std::vector<int> counts = warm_ups(ranks, microbatches, block, options);
  require_feasible(ranks, options.extra, counts);
  std::vector<Schedule::Row> rows;
  for (int r = 0; r < ranks; ++r) {
    const auto forwards = block_order(r, ranks, microbatches, options.loops, block, true);
    const auto backwards = block_order(r, ranks, microbatches, options.loops, block, false);
    const auto turns = [](const auto& order) {
      return [&order](int k) { return order[static_cast<std::size_t>(k)]; };
    };
    rows.push_back(alternating_row({.total = static_cast<int>(forwards.size()),
                                    .warm_up = counts[static_cast<std::size_t>(r)] - 1,
                                    .forward = turns(forwards),
                                    .backward = turns(backwards)}));
  }
  return finish(std::move(rows), StageGraph::chain(ranks * options.loops), microbatches);
}

}  // namespace stagecraft
