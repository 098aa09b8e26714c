#include "stagecraft/scheduler/planners/fitting_stages.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr double kRounding = 1e-9;  // relative; smaller gains are rounding

/// Moves operators of one proposal.
class StageFit {
 public:
  StageFit(Judge& judge, const PlanRequest& request, PlanProposal proposal)
      : judge_(judge),
        request_(request),
        best_(std::move(proposal)),
        graph_(WorkGraph::of(request.costs, best_.candidate.microbatch_size)),
        tries_(tries_of(graph_, best_)) {
    for (const auto& [id, device] : request.pinned) {
      pinned_.insert(id);
    }
  }

  PlanProposal run() && {
    const auto stages = static_cast<int>(best_.candidate.stages.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int from = 0; from < stages && !is_over(); ++from) {
        for (int to = 0; to < stages && !is_over(); ++to) {
          for (const bool forward : {true, false}) {
            moved = (from != to && move_between(from, to, forward)) || moved;
          }
        }
      }
    }
    return std::move(best_);
  }

 private:
  using Stage = std::vector<int>;

  /// Returns how many candidates may be judged: fewer if each has many operators and tasks.
  [[nodiscard]] static int tries_of(const WorkGraph& graph, const PlanProposal& proposal) {
    constexpr std::size_t kMostLooks = 4'000'000;
    const std::size_t tasks =
        2 * proposal.candidate.stages.size() * static_cast<std::size_t>(proposal.microbatches);
    const std::size_t looks = static_cast<std::size_t>(graph.size()) + tasks;
    return static_cast<int>(std::clamp<std::size_t>(kMostLooks / looks, 1, kMostMoves));
  }

  /// Returns whether the tries or the time have run out. A plan that fits is found first.
  [[nodiscard]] bool is_over() const {
    return tries_ == 0 || !request_.proceeds("stages for uneven devices", best_.fits);
  }

  [[nodiscard]] static Stage& stage(Candidate& candidate, int number) {
    return candidate.stages[static_cast<std::size_t>(number)];
  }

  /// Keeps the best of the moves of 1, 2, 4 ... operators, each alone, and together with a move of
  /// as many operators from `to` to a third stage. Returns whether one was better.
  bool move_between(int from, int to, bool forward) {
    std::optional<PlanProposal> best;
    const auto take_if_better = [&](const Candidate& candidate) {
      std::optional<PlanProposal> tried = judged(candidate);
      if (tried && is_better(*tried, best ? *best : best_)) {
        best = std::move(tried);
      }
    };
    const std::size_t most = movable_operators(best_.candidate, from, to, forward).size();
    for (std::size_t count = 1; count <= most && !is_over(); count *= 2) {
      const Candidate moved = with_move(best_.candidate, from, to, forward, count);
      take_if_better(moved);
      for (int next = 0; next < std::ssize(moved.stages); ++next) {
        if (next != from && next != to &&
            movable_operators(moved, to, next, forward).size() >= count) {
          take_if_better(with_move(moved, to, next, forward, count));
        }
      }
    }
    if (best) {
      best_ = *std::move(best);
    }
    return best.has_value();
  }

  /// Returns the operators that may move, in the order in which they would. Forward: those that
  /// `to` reads and no staying operator of `from` does. Backward: those that read `to` and no
  /// staying operator.
  [[nodiscard]] Stage movable_operators(const Candidate& candidate,
                                        int from,
                                        int to,
                                        bool forward) const {
    const Stage& target = candidate.stages[static_cast<std::size_t>(to)];
    Stage here = candidate.stages[static_cast<std::size_t>(from)];
    std::set<int> staying(here.begin(), here.end());
    std::set<int> near(target.begin(), target.end());
    if (forward) {
      std::ranges::reverse(here);
    }
    Stage movable;
    for (const int op : here) {
      const auto neighbors = forward ? graph_.succs(op) : graph_.preds(op);
      const auto is_in = [&](const std::set<int>& set) {
        return std::ranges::any_of(neighbors, [&](int other) { return set.contains(other); });
      };
      if (staying.size() > 1 && !is_in(staying) && is_in(near) && !is_pinned(op)) {
        movable.push_back(op);
        near.insert(op);
        staying.erase(op);
      }
    }
    return movable;
  }

  [[nodiscard]] bool is_pinned(int op) const {
    return std::ranges::any_of(graph_.ids(op), [&](int id) { return pinned_.contains(id); });
  }

  [[nodiscard]] Candidate with_move(
      Candidate candidate, int from, int to, bool forward, std::size_t count) const {
    const Stage movable = movable_operators(candidate, from, to, forward);
    for (std::size_t i = 0; i < count; ++i) {
      std::erase(stage(candidate, from), movable[i]);
      stage(candidate, to).push_back(movable[i]);
    }
    std::ranges::sort(stage(candidate, to));
    return candidate;
  }

  /// Returns nothing if the schedule cannot run the stages, or tries have run out.
  [[nodiscard]] std::optional<PlanProposal> judged(const Candidate& candidate) {
    if (is_over()) {
      return std::nullopt;
    }
    --tries_;
    try {
      return judge_.propose(candidate);
    } catch (const Error& error) {
      if (error.code() != Errc::ScheduleInvalid && error.code() != Errc::UsageArgument) {
        throw;
      }
      return std::nullopt;
    }
  }

  /// Among steps that are equally long, the one whose rows compute more evenly leads to shorter
  /// ones by further moves.
  [[nodiscard]] static bool is_better(const PlanProposal& tried, const PlanProposal& before) {
    if (!before.fits) {
      return tried.fits || shortage(tried) < shortage(before) * (1 - kRounding);
    }
    if (!tried.fits || tried.step > before.step * (1 + kRounding)) {
      return false;  // keeps FS-1
    }
    return tried.step < before.step * (1 - kRounding) ||
           unevenness(tried) < unevenness(before) * (1 - kRounding);
  }

  /// Returns the bytes that all rows lack.
  [[nodiscard]] static double shortage(const PlanProposal& proposal) {
    double bytes = 0;
    for (std::size_t row = 0; row < proposal.bytes.size(); ++row) {
      bytes += std::max(0.0, proposal.lacks_on(row));
    }
    return bytes;
  }

  [[nodiscard]] static double unevenness(const PlanProposal& proposal) {
    double squares = 0;
    for (const double busy : proposal.busy) {
      squares += busy * busy;
    }
    return squares;
  }

  Judge& judge_;
  const PlanRequest& request_;
  PlanProposal best_;
  WorkGraph graph_;
  std::set<int> pinned_;
  int tries_;
};

}  // namespace

PlanProposal with_fitting_stages(Judge& judge, const PlanRequest& request, PlanProposal proposal) {
  return StageFit(judge, request, std::move(proposal)).run();
}

}  // namespace stagecraft
