#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// The load of one stage so far. Items are always added from left to right, so that equal items
/// make equal sums everywhere, and a part of a stage never adds up to more than the whole.
struct Load {
  double time = 0;
  double bytes = 0;

  void add(const CutItem& item) {
    time += item.time;
    bytes += item.bytes;
  }
  [[nodiscard]] bool within(const Load& limit) const {
    return time <= limit.time && bytes <= limit.bytes;
  }
};

/// Returns the fewest stages within the limit: each takes as many as fit. Requires: every item
/// fits.
std::size_t stages_needed(std::span<const CutItem> items, const Load& limit) {
  std::size_t stages = 1;
  Load load;
  for (const CutItem& item : items) {
    Load more = load;
    more.add(item);
    if (!more.within(limit)) {
      ++stages;
      more = {};
      more.add(item);
    }
    load = more;
  }
  return stages;
}

/// Returns the smallest possible time of the largest of so many stages, by bisection down to
/// neighboring numbers. Requires: the bytes fit, and `total` is the time of all.
double smallest_limit(std::span<const CutItem> items,
                      std::size_t stages,
                      double cap,
                      double longest_item,
                      double total) {
  const auto suffices = [&](double time) { return stages_needed(items, {time, cap}) <= stages; };
  double below = longest_item;
  double limit = total;
  if (suffices(below)) {
    return below;
  }
  while (true) {
    const double middle = below + (limit - below) / 2;
    if (middle <= below || middle >= limit) {
      return limit;
    }
    (suffices(middle) ? limit : below) = middle;
  }
}

/// Returns, by number of stages, how many of the first items fit into so many.
std::vector<std::size_t> reaches(std::span<const CutItem> items,
                                 std::size_t stages,
                                 const Load& limit) {
  std::vector<std::size_t> reaches{0};
  Load load;
  for (std::size_t end = 0; reaches.size() < stages; ++end) {
    if (end < items.size()) {
      load.add(items[end]);
      if (load.within(limit)) {
        continue;
      }
      load = {};
      load.add(items[end]);
    }
    reaches.push_back(std::min(end, items.size()));
  }
  return reaches;
}

/// The best cut of the last items into so many stages, built from the last stage to the first. It
/// considers only first items that the stages before can reach and from which a cut exists.
class Cuts {
 public:
  Cuts(std::span<const CutItem> items, std::size_t stages, const Load& limit)
      : items_(items), starts_(stages) {
    const std::vector<std::size_t> reach = reaches(items, stages, limit);
    for (std::size_t s = 0; s < stages; ++s) {
      const std::size_t before = stages - 1 - s;
      Starts& starts = starts_[s];
      starts.last = std::min(reach[before], items.size() - 1 - s);
      for (std::size_t first = starts.last + 1; first-- > before;) {
        const Best best = best_of(s, first, limit);
        if (best.end == 0) {
          break;  // more items in as many stages cannot fit either
        }
        starts.best.push_back(best);
      }
      rank(s);
    }
  }

  [[nodiscard]] std::vector<ItemRange> ranges() const {
    std::vector<ItemRange> ranges;
    std::size_t first = 0;
    for (std::size_t s = starts_.size(); s-- > 0;) {
      const std::size_t end = at(s, first).end;
      ranges.emplace_back(first, end);
      first = end;
    }
    return ranges;
  }

 private:
  /// A stage ends before `end`, and `s` more stages follow.
  struct Best {
    std::size_t end = 0;  ///< 0: no cut is within the limit
    double crossing = 0;  ///< over all cuts
    double largest = 0;   ///< time of the largest stage
  };

  /// By first item, from the last possible one down.
  struct Starts {
    std::size_t last = 0;
    std::vector<Best> best;
    std::vector<std::size_t> rank;
  };

  [[nodiscard]] Best at(std::size_t s, std::size_t first) const {
    const Starts& starts = starts_[s];
    return first <= starts.last && starts.last - first < starts.best.size()
               ? starts.best[starts.last - first]
               : Best{};
  }

  [[nodiscard]] Best best_of(std::size_t s, std::size_t first, const Load& limit) const {
    Best best;
    Load load;
    for (std::size_t end = first + 1; end + s <= items_.size(); ++end) {
      load.add(items_[end - 1]);
      if (!load.within(limit)) {
        break;
      }
      if (s == 0) {
        best = end == items_.size() ? Best{end, 0, load.time} : best;
        continue;
      }
      const Best rest = at(s - 1, end);
      if (rest.end == 0) {
        continue;
      }
      const Best found{
          end, items_[end - 1].crossing + rest.crossing, std::max(load.time, rest.largest)};
      if (best.end == 0 || is_better(s, found, best)) {
        best = found;
      }
    }
    return best;
  }

  /// Compares bytes first, then the largest of all stages, of all but the first, and so on: keeps
  /// BC-1. Of equal cuts the earlier is found first, and stays. Requires: s > 0.
  [[nodiscard]] bool is_better(std::size_t s, const Best& a, const Best& b) const {
    return a.crossing != b.crossing ? a.crossing < b.crossing : sizes(s, a) < sizes(s, b);
  }

  /// Returns the largest stage and a rank that stands for the sizes of the later ones.
  [[nodiscard]] std::pair<double, std::size_t> sizes(std::size_t s, const Best& best) const {
    const Starts* rest = s > 0 ? &starts_[s - 1] : nullptr;
    return {best.largest, rest != nullptr ? rest->rank[rest->last - best.end] : 0};
  }

  /// Ranks the starts by the sizes of their stages; equal ones have equal ranks.
  void rank(std::size_t s) {
    Starts& starts = starts_[s];
    std::vector<std::size_t> order(starts.best.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto sizes_at = [&](std::size_t i) { return sizes(s, starts.best[i]); };
    std::ranges::sort(order, {}, sizes_at);
    starts.rank.resize(order.size());
    for (std::size_t i = 1; i < order.size(); ++i) {
      const bool same = sizes_at(order[i]) == sizes_at(order[i - 1]);
      starts.rank[order[i]] = starts.rank[order[i - 1]] + (same ? 0 : 1);
    }
  }

  std::span<const CutItem> items_;
  std::vector<Starts> starts_;  // by number of stages that follow
};

void require_amount(double value, const char* what, std::size_t item) {
  if (!std::isfinite(value) || value < 0) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "a cut needs finite numbers of at least 0, but item {} has {} {}", item, value, what));
  }
}

void require_cap(std::span<const CutItem> items, std::size_t stages, const Load& limit) {
  const auto heaviest = std::ranges::max_element(items, {}, &CutItem::bytes);
  if (heaviest->bytes > limit.bytes) {
    throw Error(Errc::UsageArgument,
                fmt::format("item {} alone holds {}, a stage may hold {}; raise the cap by {} or "
                            "divide the item",
                            heaviest - items.begin(),
                            bytes_text(heaviest->bytes),
                            bytes_text(limit.bytes),
                            enough_bytes_text(heaviest->bytes - limit.bytes)));
  }
  const std::size_t needed = stages_needed(items, limit);
  if (needed > stages) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} items hold more than {} of {} do; raise the cap, or "
                            "cut into at least {} stages",
                            items.size(),
                            count_text(stages, "stage"),
                            bytes_text(limit.bytes),
                            needed));
  }
}

}  // namespace

std::vector<ItemRange> balanced_cut(std::span<const CutItem> items,
                                    int stages,
                                    double memory_cap,
                                    double slack) {
  if (stages < 1 || items.size() < static_cast<std::size_t>(stages)) {
    throw Error(Errc::UsageArgument,
                fmt::format("a stage holds at least one item; found {} for {}",
                            count_text(stages, "stage"),
                            count_text(items.size(), "item")));
  }
  if (!(slack >= 0) || !std::isfinite(slack)) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("the slack of a cut is a part of its largest stage, at least 0; found {}",
                    slack));
  }
  const auto count = static_cast<std::size_t>(stages);
  Load total;
  double crossing = 0;
  double longest = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    require_amount(items[i].time, "as time", i);
    require_amount(items[i].bytes, "bytes", i);
    require_amount(items[i].crossing, "bytes behind it", i);
    total.add(items[i]);
    crossing += items[i].crossing;
    longest = std::max(longest, items[i].time);
  }
  if (!std::isfinite(total.time + total.bytes + crossing)) {
    throw Error(Errc::UsageArgument,
                "the items add up to more than any number holds; give them in a larger unit");
  }
  require_cap(items, count, {total.time, memory_cap});
  const double limit = smallest_limit(items, count, memory_cap, longest, total.time);
  return Cuts(items, count, {limit * (1 + slack), memory_cap}).ranges();
}

}  // namespace stagecraft
