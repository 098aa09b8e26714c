#include "stagecraft/scheduler/planners/pfeife/cut_beam.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace stagecraft {
namespace {

constexpr int kFarthestMove = 10;

struct CutHash {
  std::size_t operator()(const std::vector<int>& cuts) const {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const int place : cuts) {
      hash = (hash ^ static_cast<std::uint64_t>(place)) * 0x100000001b3;
    }
    return static_cast<std::size_t>(hash ^ (hash >> 29));
  }
};

struct Kept {
  ScoredCut cut;
  bool expanded = false;
};

class Beam {
 public:
  Beam(CutCost& cost, std::vector<int> start, const BeamOptions& options)
      : cost_(cost),
        width_(static_cast<std::size_t>(options.width)),
        is_over_(options.is_over),
        least_(std::max(1, cost.row().size() / (8 * cost.stages()))) {
    seen_.insert(start);
    const CutScore score = score_below(cost_, start, {}).value_or(CutScore{});
    kept_.push_back({{std::move(start), score}});
  }

  /// Expands the cuts kept. Returns whether there was one to expand, and time to do it.
  bool round() {
    std::vector<std::vector<int>> fresh;
    for (Kept& kept : kept_) {
      if (!std::exchange(kept.expanded, true)) {
        fresh.push_back(kept.cut.cuts);
      }
    }
    for (const std::vector<int>& cuts : fresh) {
      expand(cuts);
    }
    return !fresh.empty() && !over_;
  }

  [[nodiscard]] const ScoredCut& best() const { return kept_.front().cut; }

 private:
  void expand(const std::vector<int>& cuts) {
    std::vector<int> moved;
    for (std::size_t place = 0; place < cuts.size() && !over_; ++place) {
      over_ = is_over_ && is_over_();
      for (int by = -kFarthestMove; by <= kFarthestMove; ++by) {
        if (by == 0) {
          continue;
        }
        moved = cuts;
        move_single(moved, place, by);
        consider(moved);
        const int to = cuts[place] + by;
        if (to > 0 && to < cost_.row().size()) {
          moved = cuts;
          move_proportionally(moved, place, by, cost_.row().size());
          consider(moved);
        }
      }
    }
  }

  void consider(const std::vector<int>& cuts) {
    if (!is_cut(cuts, cost_.row().size(), least_) || !seen_.insert(cuts).second) {
      return;
    }
    const bool full = kept_.size() == width_;
    const auto score = score_below(cost_, cuts, full ? kept_.back().cut.score : CutScore{});
    if (!score) {
      return;
    }
    if (full) {
      kept_.pop_back();
    }
    const auto at = std::ranges::upper_bound(
        kept_, *score, {}, [](const Kept& kept) { return kept.cut.score; });
    kept_.insert(at, {{cuts, *score}});
  }

  CutCost& cost_;
  std::size_t width_;
  const std::function<bool()>& is_over_;
  bool over_ = false;
  int least_;
  std::vector<Kept> kept_;  // best first
  std::unordered_set<std::vector<int>, CutHash> seen_;
};

/// Returns `value` times `numerator` / `denominator`, rounded to the nearest, halves up.
int scaled(int value, int numerator, int denominator) {
  const auto twice = 2LL * value * numerator + denominator;
  return static_cast<int>(twice / (2LL * denominator));
}

}  // namespace

std::optional<CutScore> score_below(CutCost& cost,
                                    std::span<const int> cuts,
                                    const CutScore& limit) {
  CutScore score{0, cost.bound(cuts)};
  if (score >= limit) {
    return std::nullopt;
  }
  score.time = cost.step_time(cuts);
  if (score >= limit) {
    return std::nullopt;  // worse, whatever memory it needs
  }
  if (cost.memory() != std::numeric_limits<double>::infinity()) {
    score.excess = std::max(0.0, cost.peak(cuts).bytes - cost.memory());
  }
  return score < limit ? std::optional(score) : std::nullopt;
}

void move_single(std::vector<int>& cuts, std::size_t place, int by) {
  cuts[place] += by;
}

void move_proportionally(std::vector<int>& cuts, std::size_t place, int by, int operators) {
  const int from = cuts[place];
  const int to = from + by;
  for (std::size_t s = 0; s < cuts.size(); ++s) {
    if (s < place) {
      cuts[s] = scaled(cuts[s], to, from);
    } else if (s > place) {
      cuts[s] = to + scaled(cuts[s] - from, operators - to, operators - from);
    }
  }
  cuts[place] = to;
}

bool is_cut(std::span<const int> cuts, int operators, int least) {
  int begin = 0;
  for (const int place : cuts) {
    if (place - begin < least) {
      return false;
    }
    begin = place;
  }
  return operators - begin >= least;
}

ScoredCut beam_from(CutCost& cost, std::vector<int> start, const BeamOptions& options) {
  Beam beam(cost, std::move(start), options);
  for (int round = 0; round < options.rounds && beam.round(); ++round) {
  }
  return beam.best();
}

}  // namespace stagecraft
