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
        graph_(WorkGraph::of(request.costs, best_.candidate.microbatch_size)) {
    for (const auto& [id, device] : request.pinned) {
      pinned_.insert(id);
    }
  }

  PlanProposal run() && {
    const auto stages = static_cast<int>(best_.candidate.stages.size());
    for (bool moved = true; moved;) {
      moved = false;
      for (int from = 0; from < stages; ++from) {
        for (int to = 0; to < stages; ++to) {
          moved = (from != to && move_between(from, to)) || moved;
        }
      }
    }
    return std::move(best_);
  }

 private:
  using Stage = std::vector<int>;

  [[nodiscard]] Stage& stage(Candidate& candidate, int number) const {
    return candidate.stages[static_cast<std::size_t>(number)];
  }

  /// Keeps the best of the moves of 1, 2, 4 ... operators. Returns whether one was better.
  bool move_between(int from, int to) {
    bool moved = false;
    for (const bool forward : {true, false}) {
      const Stage movable = movable_operators(from, to, forward);
      std::optional<PlanProposal> best;
      for (std::size_t count = 1; count <= movable.size(); count *= 2) {
        std::optional<PlanProposal> tried = tried_move(from, to, {movable.data(), count});
        if (tried && is_better(*tried, best ? *best : best_)) {
          best = std::move(tried);
        }
      }
      if (best) {
        best_ = *std::move(best);
        moved = true;
      }
    }
    return moved;
  }

  /// Returns the operators that may move, in the order in which they would: those whose readers in
  /// their stage move too, and which `to` reads (`forward`); or those that read `to`, likewise.
  [[nodiscard]] Stage movable_operators(int from, int to, bool forward) {
    const Stage& target = stage(best_.candidate, to);
    Stage here = stage(best_.candidate, from);
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

  /// Returns nothing if the schedule cannot run the stages after the move, or tries have run out.
  [[nodiscard]] std::optional<PlanProposal> tried_move(int from,
                                                       int to,
                                                       std::span<const int> operators) {
    if (tries_ == 0 || !request_.proceeds("stages for uneven devices", true)) {
      return std::nullopt;
    }
    --tries_;
    Candidate candidate = best_.candidate;
    for (const int op : operators) {
      std::erase(stage(candidate, from), op);
      stage(candidate, to).push_back(op);
    }
    std::ranges::sort(stage(candidate, to));
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
      return tried.fits || tried.lacks() < before.lacks() * (1 - kRounding);
    }
    if (!tried.fits || tried.step > before.step * (1 + kRounding)) {
      return false;  // keeps FS-1
    }
    return tried.step < before.step * (1 - kRounding) ||
           unevenness(tried) < unevenness(before) * (1 - kRounding);
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
  int tries_ = kMostMoves;
};

}  // namespace

PlanProposal with_fitting_stages(Judge& judge, const PlanRequest& request, PlanProposal proposal) {
  return StageFit(judge, request, std::move(proposal)).run();
}

}  // namespace stagecraft
