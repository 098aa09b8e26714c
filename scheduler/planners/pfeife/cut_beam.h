/// cut_beam finds a good cut for a schedule, by a beam over cuts that differ in one place.
///
///     5 10  --one place by 1-->  6 10      --in proportion-->  6 11
///
/// It starts at a cut and expands the best few cuts until none of their neighbors is better. It
/// ends if no single move helps, which may be before the best cut; cut_search.h continues from
/// there. Pure; any thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", algorithm 1, with the right factor
/// of proportional moves as its text means it. The paper's beam forgets cuts that do not fit the
/// memory. We keep them after all that fit, those nearest to fitting first, so that a start that
/// does not fit can still lead to a cut that does.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "stagecraft/scheduler/planners/pfeife/cut_cost.h"

namespace stagecraft {

/// CutScore orders cuts: cuts that fit come before cuts that do not; shorter steps come before
/// longer ones.
struct CutScore {
  double excess = std::numeric_limits<double>::infinity();  ///< bytes that the fullest row lacks
  double time = std::numeric_limits<double>::infinity();    ///< of a step

  friend auto operator<=>(const CutScore&, const CutScore&) = default;
};

struct ScoredCut {
  std::vector<int> cuts;
  CutScore score;
};

/// Returns the score, or nothing if it is not below `limit`.
[[nodiscard]] std::optional<CutScore> score_below(CutCost& cost,
                                                  std::span<const int> cuts,
                                                  const CutScore& limit);

/// Moves one place; its neighbors stay.
void move_single(std::vector<int>& cuts, std::size_t place, int by);
/// Moves a place; the stages on either side keep their proportions. `operators`: the model's
/// number.
void move_proportionally(std::vector<int>& cuts, std::size_t place, int by, int operators);
/// Returns whether every stage has at least `least` operators.
[[nodiscard]] bool is_cut(std::span<const int> cuts, int operators, int least);

struct BeamOptions {
  int width = 2;
  int rounds = 100;
  /// The search calls it between moves; true ends the search with the best cut so far. Empty:
  /// never.
  std::function<bool()> is_over;
};

/// Returns the best cut. Requires: `start` is a cut.
/// Cost: 40 step times for every place of every expanded cut.
[[nodiscard]] ScoredCut beam_from(CutCost& cost,
                                  std::vector<int> start,
                                  const BeamOptions& options = {});

}  // namespace stagecraft
