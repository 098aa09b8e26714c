#include "stagecraft/scheduler/search/order_search.h"

#include <algorithm>
#include <utility>

#include "stagecraft/scheduler/search/cap_rules.h"

namespace stagecraft {

OrderSearch::OrderSearch(const SearchProblem& problem, std::function<bool()> keep_going)
    : problem_(problem),
      keep_going_(std::move(keep_going)),
      state_(problem),
      fitting_(index(problem.devices)),
      from_(index(problem.devices), 0),
      end_(problem.lanes.size(), std::vector<Ticks>(index(problem.microbatches), 0)) {}

OrderSearch::Verdict OrderSearch::run(Ticks horizon, std::size_t states) {
  horizon_ = horizon;
  most_states_ = states_ + states;
  stopped_ = false;
  found_.clear();
  for (std::vector<MachineJob>& jobs : fitting_) {
    jobs.clear();
  }
  if (explore()) {
    return Verdict::Found;
  }
  return stopped_ ? Verdict::Unknown : Verdict::None;
}

bool OrderSearch::stopped() {
  constexpr std::size_t kStatesBetweenQuestions = 512;
  stopped_ = stopped_ || states_ >= most_states_ ||
             (keep_going_ && states_ % kStatesBetweenQuestions == 0 && !keep_going_());
  states_ += stopped_ ? 0 : 1;
  return stopped_;
}

bool OrderSearch::explore() {
  if (state_.is_complete()) {
    found_ = state_.order();
    makespan_ = state_.makespan();
    return true;
  }
  if (stopped()) {
    return false;
  }
  const std::optional<int> lane = first_done();
  if (!lane || !set_from(*lane)) {
    return false;
  }
  state_.progress(progress_);
  const FailedStates::Key unbarred = FailedStates::key_of(progress_);
  state_.add_bars(progress_);
  const FailedStates::Key key = FailedStates::key_of(progress_);
  state_.times(from_, horizon_, times_);
  if (failed_.covers(unbarred, times_) || (key != unbarred && failed_.covers(key, times_)) ||
      !can_end_in_time()) {
    return false;
  }
  if (explore_next(*lane)) {
    return true;
  }
  if (!stopped_) {
    (void)set_from(*lane);  // deeper states have overwritten from_
    state_.times(from_, horizon_, times_);
    failed_.add(key, times_);
  }
  return false;
}

Ticks OrderSearch::done_at(int lane) const {
  return state_.earliest(lane) + problem_.lanes[index(lane)].time;
}

std::optional<int> OrderSearch::first_done() const {
  std::optional<int> first;
  Ticks done = PartialSchedule::kNever;
  for (int lane = 0; lane < static_cast<int>(problem_.lanes.size()); ++lane) {
    if (state_.may_start(lane)) {
      const Ticks end = done_at(lane);
      if (end < done) {
        done = end;
        first = lane;
      }
    }
  }
  return first;
}

bool OrderSearch::set_from(int first) {
  const Ticks done = done_at(first);
  for (std::size_t d = 0; d < from_.size(); ++d) {
    Ticks next = done;
    for (const int lane : problem_.of_device[d]) {
      if (state_.may_start(lane)) {
        next = std::min(next, state_.earliest(lane));
      }
    }
    from_[d] = std::max(state_.device(d).free, next);
    if (from_[d] >= state_.device(d).starts_by) {
      return false;
    }
  }
  return true;
}

bool OrderSearch::explore_next(int first) {
  const std::size_t d = index(problem_.lanes[index(first)].device);
  const std::vector<int> turns = turns_before(d, done_at(first));
  for (const int lane : turns) {
    const bool found = explore_start(lane);
    if (found || stopped_) {
      return found;
    }
  }
  return !state_.leaves_cap(first) && explore_idleness(first, turns);
}

std::vector<int> OrderSearch::turns_before(std::size_t d, Ticks end) const {
  std::vector<int> turns;
  const std::vector<int>& lanes = problem_.of_device[d];
  for (auto lane = lanes.rbegin(); lane != lanes.rend(); ++lane) {
    if (state_.may_start(*lane) && state_.earliest(*lane) < end) {
      turns.push_back(*lane);
    }
  }
  // The task that can start first comes first. Of equal ones, backwards come first, because they
  // free memory and let others continue, then forwards of later stages.
  std::ranges::stable_sort(turns, {}, [&](int lane) {
    const Lane& l = problem_.lanes[index(lane)];
    const int rank = l.feeds_nobody ? 2 : l.takes ? 1 : 0;
    return std::pair{state_.earliest(lane), rank};
  });
  return turns;
}

bool OrderSearch::explore_idleness(int first, const std::vector<int>& turns) {
  const std::size_t d = index(problem_.lanes[index(first)].device);
  const PartialSchedule::Device before = state_.device(d);
  Ticks starts_by = before.starts_by;
  for (const int lane : turns) {
    if (state_.leaves_cap(lane)) {
      starts_by = std::min(starts_by, done_at(lane));
    }
  }
  if (starts_by <= done_at(first)) {
    return false;
  }
  state_.idle(d, turns, first, starts_by);
  const bool found = explore();
  state_.undo_idle(d, before);
  return found;
}

bool OrderSearch::explore_start(int lane) {
  const Lane& l = problem_.lanes[index(lane)];
  const PartialSchedule::Device before = state_.device_of(lane);
  state_.start(lane);
  const bool found = !state_.is_stuck(index(l.device)) && explore();
  state_.undo_start(lane, before);
  return found;
}

Ticks OrderSearch::releases_end(const Lane& lane, int m) {
  Ticks last = 0;
  if (const int released = last_released_before(problem_, lane, m); released >= 0) {
    for (const int release : lane.path_releases) {
      last = std::max(last, end_[index(release)][index(released)]);
    }
  }
  const int count = released_before(problem_, lane, m);
  if (count > 0) {
    ends_.clear();
    for (const int release : lane.path_releases) {
      const std::vector<Ticks>& ends = end_[index(release)];
      ends_.insert(ends_.end(), ends.begin(), ends.begin() + m);
    }
    std::ranges::nth_element(ends_, ends_.begin() + (count - 1));
    last = std::max(last, ends_[index(count - 1)]);
  }
  return last;
}

bool OrderSearch::fit(std::size_t d) const {
  return std::ranges::equal(jobs_, fitting_[d], [](const MachineJob& job, const MachineJob& fits) {
    return job.head <= fits.head && job.time == fits.time && job.tail == fits.tail;
  });
}

bool OrderSearch::can_end_in_time() {
  // For a task that has not started, end_ is its earliest possible end.
  for (int m = 0; m < problem_.microbatches; ++m) {
    for (std::size_t l = 0; l < problem_.lanes.size(); ++l) {
      const int lane_number = static_cast<int>(l);
      if (m < state_.done(lane_number)) {
        end_[l][index(m)] = state_.end(lane_number, m);
        continue;
      }
      const Lane& lane = problem_.lanes[l];
      Ticks head = std::max(from_[index(lane.device)], problem_.heads[l][index(m)]);
      if (m > 0) {
        head = std::max(head, end_[l][index(m - 1)]);
      }
      for (const Lane::Feed& feed : lane.feeds) {
        head = std::max(head, end_[index(feed.lane)][index(m)] + feed.transfer);
      }
      if (lane.takes) {
        head = std::max(head, releases_end(lane, m));
      }
      end_[l][index(m)] = head + lane.time;
      if (end_[l][index(m)] + problem_.tails[l][index(m)] > horizon_) {
        return false;
      }
    }
  }
  for (std::size_t d = 0; d < problem_.of_device.size(); ++d) {
    jobs_.clear();
    for (const int lane : problem_.of_device[d]) {
      const std::size_t l = index(lane);
      const Ticks time = problem_.lanes[l].time;
      for (int m = state_.done(lane); m < problem_.microbatches; ++m) {
        jobs_.push_back({end_[l][index(m)] - time, time, problem_.tails[l][index(m)]});
      }
    }
    if (fit(d)) {
      continue;
    }
    std::vector<MachineJob>& fitting = fitting_[d];
    fitting.assign(jobs_.begin(), jobs_.end());
    if (one_machine_bound(jobs_) > horizon_) {
      fitting.clear();
      return false;
    }
  }
  return true;
}

}  // namespace stagecraft
