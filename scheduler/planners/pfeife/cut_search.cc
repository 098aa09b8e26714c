#include "stagecraft/scheduler/planners/pfeife/cut_search.h"

#include <algorithm>
#include <array>
#include <random>
#include <span>

namespace stagecraft {
namespace {

constexpr std::array kNear{-3, -2, -1, 1, 2, 3};
constexpr std::array kFar{-40, -20, -10, -7, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 7, 10, 20, 40};

/// Returns the number of cuts of so many operators, or `limit` if there are more.
double cuts_up_to(int operators, int stages, double limit) {
  double count = 1;
  for (int i = 1; i < stages && count < limit; ++i) {
    count *= static_cast<double>(operators - stages + i) / i;
  }
  return std::min(count, limit);
}

bool looks_at_all(const CutCost& cost, const CutSearchOptions& options) {
  const double most = options.all_up_to;
  return cuts_up_to(cost.row().size(), cost.stages(), most + 1) <= most;
}

/// Advances to the next cut in lexicographic order. Returns false after the last.
bool advance(std::vector<int>& cuts, int operators) {
  for (std::size_t i = cuts.size(); i-- > 0;) {
    const auto behind = static_cast<int>(cuts.size() - i);
    if (cuts[i] < operators - behind) {
      ++cuts[i];
      for (std::size_t j = i + 1; j < cuts.size(); ++j) {
        cuts[j] = cuts[j - 1] + 1;
      }
      return true;
    }
  }
  return false;
}

/// The number of cuts that are tried between two looks at the time.
constexpr std::size_t kBetweenLooks = 32;

bool is_over(const CutSearchOptions& options) {
  return options.beam.is_over && options.beam.is_over();
}

ScoredCut best_of_all(CutCost& cost, const CutSearchOptions& options) {
  std::vector<int> cuts;
  for (int s = 1; s < cost.stages(); ++s) {
    cuts.push_back(s);
  }
  ScoredCut best;
  std::size_t tried = 0;
  do {
    if (const auto score = score_below(cost, cuts, best.score)) {
      best = {cuts, *score};
    }
  } while (advance(cuts, cost.row().size()) && (++tried % kBetweenLooks != 0 || !is_over(options)));
  return best;
}

/// Descends from a cut by moves of one place, of neighbors together, and of any two, until none
/// helps or the budget of moves is spent.
class Descent {
 public:
  Descent(CutCost& cost, ScoredCut from, std::size_t& moves_left, const CutSearchOptions& options)
      : cost_(cost), best_(std::move(from)), moves_left_(moves_left), options_(options) {}

  ScoredCut run() {
    do {
      while (slide()) {
      }
    } while (move_two());
    return best_;
  }

 private:
  /// Moves one place first, then two neighbors, and so on.
  bool slide() {
    bool better = false;
    for (std::size_t more = 0; more < best_.cuts.size(); ++more) {
      for (std::size_t first = 0; first + more < best_.cuts.size(); ++first) {
        for (const int by : kFar) {
          moved_ = best_.cuts;
          for (std::size_t s = first; s <= first + more; ++s) {
            moved_[s] += by;
          }
          better = take() || better;
        }
      }
    }
    return better;
  }

  bool move_two() {
    for (std::size_t a = 0; a < best_.cuts.size(); ++a) {
      for (std::size_t b = a + 1; b < best_.cuts.size(); ++b) {
        for (const int by_a : kNear) {
          for (const int by_b : kNear) {
            moved_ = best_.cuts;
            moved_[a] += by_a;
            moved_[b] += by_b;
            if (take()) {
              return true;
            }
          }
        }
      }
    }
    return false;
  }

  bool take() {
    if (moves_left_ == 0 || !is_cut(moved_, cost_.row().size(), 1)) {
      return false;
    }
    --moves_left_;
    if (moves_left_ % kBetweenLooks == 0 && is_over(options_)) {
      moves_left_ = 0;
    }
    const auto score = score_below(cost_, moved_, best_.score);
    if (score) {
      best_ = {moved_, *score};
    }
    return score.has_value();
  }

  CutCost& cost_;
  ScoredCut best_;
  std::size_t& moves_left_;
  const CutSearchOptions& options_;
  std::vector<int> moved_;
};

/// Moves three places by up to half of a mean stage.
std::vector<int> shaken(std::vector<int> cuts, int operators, std::minstd_rand& random) {
  const int stage = operators / static_cast<int>(cuts.size() + 1);
  const auto reach = static_cast<std::minstd_rand::result_type>(std::max(2, stage / 2));
  for (int i = 0; i < 3; ++i) {
    const std::size_t place = random() % cuts.size();
    const int low = stage_begin(cuts, place) + 1;
    const int high = stage_end(cuts, place + 1, operators) - 1;
    const int by = static_cast<int>(random() % (2 * reach + 1)) - static_cast<int>(reach);
    cuts[place] = std::clamp(cuts[place] + by, low, high);
  }
  return cuts;
}

/// Returns the places where the running sum of the weights passes the next equal share.
template <class Weight>
std::vector<int> equal_shares(const OperatorRow& row, int stages, Weight&& weight) {
  double total = 0;
  for (int op = 0; op < row.size(); ++op) {
    total += weight(op);
  }
  std::vector<int> cuts;
  double sum = 0;
  int op = 0;
  for (int s = 1; s < stages; ++s) {
    const int least = s;
    const int most = row.size() - (stages - s);
    while (op < most && (op < least || sum + weight(op) / 2 < total * s / stages)) {
      sum += weight(op++);
    }
    cuts.push_back(op);
  }
  return cuts;
}

}  // namespace

std::vector<std::vector<int>> starting_cuts(const OperatorRow& row, int stages) {
  const WorkGraph& graph = row.graph();
  const auto time = [&](int op) { return graph.at(op).time(); };
  const auto bytes = [&](int op) {
    const StageWork alone = work_of(graph, std::span(&op, 1));
    return alone.kept + alone.held;
  };
  std::vector<std::vector<int>> starts{equal_shares(row, stages, [](int) { return 1.0; }),
                                       equal_shares(row, stages, time),
                                       equal_shares(row, stages, bytes)};
  std::ranges::sort(starts);
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

ScoredCut first_cut(CutCost& cost, const CutSearchOptions& options) {
  if (looks_at_all(cost, options)) {
    return best_of_all(cost, options);
  }
  ScoredCut best;
  for (const std::vector<int>& start :
       options.starts.empty() ? starting_cuts(cost.row(), cost.stages()) : options.starts) {
    ScoredCut found = beam_from(cost, start, options.beam);
    if (best.cuts.empty() || found.score < best.score) {
      best = std::move(found);
    }
    if (is_over(options)) {
      break;
    }
  }
  return best;
}

ScoredCut refine_cut(CutCost& cost, ScoredCut first, const CutSearchOptions& options) {
  if (looks_at_all(cost, options)) {
    return first;
  }
  std::size_t moves_left = options.most_moves;
  ScoredCut best = Descent(cost, std::move(first), moves_left, options).run();
  std::minstd_rand random;
  for (std::size_t i = 0; i < options.restarts && moves_left > 0; ++i) {
    std::vector<int> from = shaken(best.cuts, cost.row().size(), random);
    const CutScore score = score_below(cost, from, {}).value_or(CutScore{});
    ScoredCut found = Descent(cost, {std::move(from), score}, moves_left, options).run();
    if (found.score < best.score) {
      best = std::move(found);
    }
  }
  return best;
}

ScoredCut find_cut(CutCost& cost, const CutSearchOptions& options) {
  return refine_cut(cost, first_cut(cost, options), options);
}

}  // namespace stagecraft
