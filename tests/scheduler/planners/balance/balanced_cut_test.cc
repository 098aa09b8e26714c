#include "stagecraft/scheduler/planners/balance/balanced_cut.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <random>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using ItemRanges = std::vector<ItemRange>;

constexpr double kNoCap = std::numeric_limits<double>::infinity();

std::vector<CutItem> of_times(const std::vector<double>& times) {
  std::vector<CutItem> items;
  for (const double time : times) {
    items.push_back({.time = time});
  }
  return items;
}

/// Holds what BC-1 compares, in its order; nothing for a cut beyond the cap.
using Worth = std::vector<double>;
std::optional<Worth> worth_of(const std::vector<CutItem>& items,
                              const ItemRanges& cut,
                              double cap) {
  Worth largest_from;  // by stage: the largest of this stage and all after it
  double crossing = 0;
  double largest = 0;
  for (auto range = cut.rbegin(); range != cut.rend(); ++range) {
    double time = 0;
    double bytes = 0;
    for (std::size_t i = range->first; i < range->second; ++i) {
      time += items[i].time;
      bytes += items[i].bytes;
    }
    if (bytes > cap) {
      return std::nullopt;
    }
    crossing += range == cut.rbegin() ? 0 : items[range->second - 1].crossing;
    largest = std::max(largest, time);
    largest_from.insert(largest_from.begin(), largest);
  }
  Worth worth{largest, crossing};
  worth.insert(worth.end(), largest_from.begin(), largest_from.end());
  for (const ItemRange& range : cut) {
    worth.push_back(static_cast<double>(range.second));
  }
  return worth;
}

/// Returns the best of all cuts, found by trying each; nothing if none is within the cap.
std::optional<ItemRanges> best_by_trying(const std::vector<CutItem>& items,
                                         int stages,
                                         double cap) {
  std::optional<ItemRanges> best;
  std::optional<Worth> worth;
  for (unsigned cuts = 0; cuts < 1U << (items.size() - 1); ++cuts) {
    ItemRanges cut;
    std::size_t first = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i + 1 == items.size() || (cuts >> i & 1U) != 0) {
        cut.emplace_back(first, i + 1);
        first = i + 1;
      }
    }
    if (std::ssize(cut) != stages) {
      continue;
    }
    const auto its = worth_of(items, cut, cap);
    if (its && (!worth || *its < *worth)) {
      worth = its;
      best = cut;
    }
  }
  return best;
}

TEST_CASE("the largest stage is as small as it can be", "[scheduler][cut]") {
  CHECK(balanced_cut(of_times({3, 1, 2, 5, 1, 2, 4}), 3) == ItemRanges{{0, 3}, {3, 5}, {5, 7}});
  CHECK(balanced_cut(of_times({9, 1, 1, 1}), 2) == ItemRanges{{0, 1}, {1, 4}});
  CHECK(balanced_cut(of_times({1, 1, 1, 9}), 2) == ItemRanges{{0, 3}, {3, 4}});
  CHECK(balanced_cut(of_times({2, 3}), 1) == ItemRanges{{0, 2}});
  CHECK(balanced_cut(of_times({2, 0, 3}), 3) == ItemRanges{{0, 1}, {1, 2}, {2, 3}});
}

TEST_CASE("equal items are split as evenly as they can be, the first stages take what is left over",
          "[scheduler][cut]") {
  // 0.1 and 1/3 do not add up exactly: equal sums must be equal at every position.
  for (const double time : {1.0, 0.1, 1.0 / 3, 1e-300, 1e300}) {
    CAPTURE(time);
    for (std::size_t count = 1; count <= 24; ++count) {
      const std::vector<CutItem> items(count, {.time = time});
      for (std::size_t stages = 1; stages <= count; ++stages) {
        CAPTURE(count, stages);
        const ItemRanges cut = balanced_cut(items, static_cast<int>(stages));
        for (std::size_t s = 0; s < stages; ++s) {
          CHECK(cut[s].second - cut[s].first == count / stages + (s < count % stages ? 1 : 0));
        }
      }
    }
  }
  CHECK(balanced_cut(of_times({0, 0, 0}), 2) == ItemRanges{{0, 1}, {1, 3}});  // the earliest
}

TEST_CASE("of equally good cuts the one that hands over fewer bytes is taken", "[scheduler][cut]") {
  std::vector<CutItem> items = of_times({1, 1, 1, 1, 1});
  CHECK(balanced_cut(items, 2) == ItemRanges{{0, 3}, {3, 5}});
  items[2].crossing = 1;
  CHECK(balanced_cut(items, 2) == ItemRanges{{0, 2}, {2, 5}});
  // Bytes count after time: 4 and 4 is the only cut whose largest stage takes 4.
  items = of_times({2, 1, 1, 2, 2});
  items[2].crossing = 100;
  CHECK(balanced_cut(items, 2) == ItemRanges{{0, 3}, {3, 5}});
}

TEST_CASE("no stage holds more than the cap, though the largest grows", "[scheduler][cut]") {
  std::vector<CutItem> items = of_times({1, 1, 1, 1});
  items[0].bytes = 5;
  items[1].bytes = 5;
  CHECK(balanced_cut(items, 2) == ItemRanges{{0, 2}, {2, 4}});
  CHECK(balanced_cut(items, 2, 10) == ItemRanges{{0, 2}, {2, 4}});
  CHECK(balanced_cut(items, 2, 9) == ItemRanges{{0, 1}, {1, 4}});
}

TEST_CASE("no cut of a small row is better, with and without a cap (BC-1)",
          "[scheduler][cut][property]") {
  std::mt19937 random(17);
  const auto below = [&](int end) {
    return static_cast<double>(random() % static_cast<unsigned>(end));
  };
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<CutItem> items(1 + random() % 9);
    const int variety = 1 + static_cast<int>(random() % 6);
    for (CutItem& item : items) {
      item = {.time = below(variety), .bytes = below(5), .crossing = below(3)};
    }
    const int stages = 1 + static_cast<int>(random() % items.size());
    const double cap = random() % 2 == 0 ? kNoCap : below(16);
    CAPTURE(round, stages, cap);
    const auto best = best_by_trying(items, stages, cap);
    if (best) {
      CHECK(balanced_cut(items, stages, cap) == *best);
    } else {
      CHECK_THROWS_AS(balanced_cut(items, stages, cap), Error);
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("where the largest stage may be a little larger, fewer bytes cross", "[scheduler][cut]") {
  const std::vector<CutItem> items{{.time = 10, .crossing = 1},
                                   {.time = 1, .crossing = 100},
                                   {.time = 12, .crossing = 1},
                                   {.time = 1}};
  CHECK(balanced_cut(items, 2) == ItemRanges{{0, 2}, {2, 4}});
  CHECK(balanced_cut(items, 2, kNoCap, 0.05) == ItemRanges{{0, 2}, {2, 4}});
  CHECK(balanced_cut(items, 2, kNoCap, 0.1) == ItemRanges{{0, 1}, {1, 4}});
  CHECK_THROWS_WITH(balanced_cut(items, 2, kNoCap, -0.1), ContainsSubstring("found -0.1"));
}

TEST_CASE("what cannot be cut is refused with what would do", "[scheduler][cut][bad-input]") {
  CHECK_THROWS_WITH(balanced_cut({}, 1), ContainsSubstring("1 stage for 0 items"));
  CHECK_THROWS_WITH(balanced_cut(of_times({1}), 2), ContainsSubstring("2 stages for 1 item"));
  CHECK_THROWS_WITH(balanced_cut(of_times({1}), 0), ContainsSubstring("at least one item"));
  CHECK_THROWS_WITH(balanced_cut(of_times({1, -1}), 1), ContainsSubstring("item 1 has -1 as time"));
  CHECK_THROWS_WITH(balanced_cut(of_times({kNoCap}), 1), ContainsSubstring("finite"));
  CHECK_THROWS_WITH(balanced_cut(of_times({1e308, 1e308}), 1), ContainsSubstring("larger unit"));
  std::vector<CutItem> items(4, {.time = 1, .bytes = 3});
  CHECK_THROWS_WITH(balanced_cut(items, 2, 5), ContainsSubstring("at least 4 stages"));
  CHECK_THROWS_WITH(
      balanced_cut(items, 4, 2),
      ContainsSubstring("item 0 alone holds 3 B, a stage may hold 2 B; raise the cap by 1 B"));
  items[3].bytes = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(balanced_cut(items, 4), ContainsSubstring("item 3 has nan bytes"));
}

}  // namespace
}  // namespace stagecraft
