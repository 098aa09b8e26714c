#include "stagecraft/scheduler/search/narrowing.h"

#include <algorithm>
#include <utility>

namespace stagecraft {

Narrowing::Narrowing(const SearchProblem& problem, Ticks upper, Limits limits)
    : limits_(std::move(limits)),
      search_(problem,
              [this] { return !limits_.keep_going || limits_.keep_going(lower_, upper_); }),
      lower_(problem.bound),
      upper_(std::max(upper, problem.bound)),
      open_(upper_) {}

void Narrowing::run() {
  constexpr std::size_t kFirstShare = 10'000;
  if (lower_ < upper_ && may_go_on()) {
    ask(lower_, kFirstShare);  // an order often meets the bound itself
  }
  if (lower_ < upper_ && may_go_on()) {
    ask(upper_ - 1, kFirstShare);  // any order may be far better than the present one
  }
  for (std::size_t share = kFirstShare; lower_ < upper_ && may_go_on(); share *= 4) {
    look_for_orders(share);
    look_for_proofs(share);
  }
}

bool Narrowing::may_go_on() const {
  return states() < limits_.states && (!limits_.keep_going || limits_.keep_going(lower_, upper_));
}

void Narrowing::look_for_orders(std::size_t share) {
  // A proof that nothing ends earlier than the best so far answers all questions, so it may take
  // longer.
  constexpr std::size_t kLastShares = 64;
  Ticks above = lower_;
  open_ = upper_;
  while (above < upper_ && may_go_on()) {
    const Ticks horizon = above + (upper_ - 1 - above) / 2;
    if (ask(horizon, horizon == upper_ - 1 ? kLastShares * share : share)) {
      above = std::max(above, lower_);
    } else {
      open_ = std::min(open_, horizon);
      above = horizon + 1;
    }
  }
}

void Narrowing::look_for_proofs(std::size_t share) {
  Ticks below = std::min(open_, upper_);
  while (lower_ < below && may_go_on()) {
    const Ticks horizon = lower_ + (below - 1 - lower_) / 2;
    below = ask(horizon, share) ? std::min(below, upper_) : horizon;
  }
}

bool Narrowing::ask(Ticks horizon, std::size_t share) {
  switch (search_.run(horizon, std::min(share, limits_.states - states()))) {
    case OrderSearch::Verdict::Found:
      upper_ = search_.makespan();
      order_ = search_.order();
      return true;
    case OrderSearch::Verdict::None:
      lower_ = horizon + 1;
      return true;
    case OrderSearch::Verdict::Unknown:
      break;
  }
  return false;
}

}  // namespace stagecraft
