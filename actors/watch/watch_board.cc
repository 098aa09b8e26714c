#include "stagecraft/actors/watch/watch_board.h"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

/// A step is late after this many times the seconds of the one before it, and never before
/// kLeastLate.
constexpr double kLateFactor = 3.0;
constexpr double kLeastLate = 1.0;

void keep_newest(std::vector<WatchEvent>& events) {
  if (events.size() > WatchBoard::kMostEvents) {
    events.erase(events.begin());
  }
}

}  // namespace

WatchBoard::WatchBoard(WatchedRun run)
    : step_begun_(clock_->now()), looked_at_(clock_->now() - 2 * kAttention) {
  state_.run = std::move(run);
}

void WatchBoard::begin_after(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  state_.last.step = step;
  tell_change();
}

void WatchBoard::begin_step() {
  const std::lock_guard lock(mutex_);
  in_step_ = true;
  step_begun_ = clock_->now();
  state_.waits.clear();
  state_.phase = WatchPhase::Running;
}

void WatchBoard::leave_step() {
  const std::lock_guard lock(mutex_);
  in_step_ = false;
  state_.waits.clear();
  tell_change();
}

void WatchBoard::end_step(WatchedStep step, std::int64_t counted) {
  const std::lock_guard lock(mutex_);
  state_.counted += counted;
  step.per_second = step.seconds > 0 ? static_cast<double>(counted) / step.seconds : 0.0;
  curve_.add({step.step, step.loss, step.seconds, step.per_second});
  if (step.timeline) {
    count_bytes(*step.timeline);
  }
  state_.last = std::move(step);
  state_.has_step = true;
  tell_change();
}

void WatchBoard::set_routes(std::vector<std::vector<Route>> routes) {
  const std::lock_guard lock(mutex_);
  routes_ = std::move(routes);
}

void WatchBoard::set_places(const std::vector<std::string>& places) {
  const std::lock_guard lock(mutex_);
  for (std::size_t r = 0; r < std::min(places.size(), state_.run.ranks.size()); ++r) {
    state_.run.ranks[r].place = places[r];
  }
}

void WatchBoard::set_waits(std::string waits) {
  const std::lock_guard lock(mutex_);
  state_.waits = std::move(waits);
  tell_change();
}

void WatchBoard::add_healing(const WatchedHealing& more) {
  const std::lock_guard lock(mutex_);
  state_.healing.restarts += more.restarts;
  state_.healing.repeated_steps += more.repeated_steps;
  state_.healing.seconds += more.seconds;
  tell_change();
}

void WatchBoard::add_checkpoint(std::int64_t step, const std::string& path) {
  const std::lock_guard lock(mutex_);
  ++state_.checkpoints_written;
  state_.checkpoints.push_back({step, path});
  keep_newest(state_.checkpoints);
  tell_change();
}

void WatchBoard::add_message(const std::string& text) {
  const std::lock_guard lock(mutex_);
  state_.messages.push_back({state_.last.step, text});
  keep_newest(state_.messages);
  tell_change();
}

void WatchBoard::take_no_wishes() {
  const std::lock_guard lock(mutex_);
  takes_wishes_ = false;
  if (state_.phase == WatchPhase::Paused) {
    state_.phase = WatchPhase::Running;
    tell_change();
  }
}

void WatchBoard::end(const std::string& how) {
  const std::lock_guard lock(mutex_);
  if (state_.phase == WatchPhase::Ended) {
    return;
  }
  in_step_ = takes_wishes_ = false;
  state_.waits.clear();
  state_.phase = WatchPhase::Ended;
  state_.end = how;
  tell_change();
}

bool WatchBoard::is_late() const {
  const std::lock_guard lock(mutex_);
  return in_step_ && seconds_of_step() > std::max(kLeastLate, kLateFactor * state_.last.seconds);
}

bool WatchBoard::is_looked_at() const {
  const std::lock_guard lock(mutex_);
  return followers_ > 0 || clock_->now() - looked_at_ < kAttention;
}

WatchWishes WatchBoard::wishes() const {
  const std::lock_guard lock(mutex_);
  return wishes_;
}

bool WatchBoard::take_checkpoint_wish() {
  const std::lock_guard lock(mutex_);
  return std::exchange(wishes_.checkpoint, false);
}

bool WatchBoard::wait_paused(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const auto stays = [&] { return wishes_.pause && !wishes_.stop; };
  if (stays() && state_.phase != WatchPhase::Paused) {
    state_.phase = WatchPhase::Paused;
    tell_change();
  }
  clock_->wait_until(
      changed_, lock, clock_->now() + limit, [&] { return !stays() || wishes_.checkpoint; });
  if (!stays() && state_.phase == WatchPhase::Paused) {
    state_.phase = WatchPhase::Running;
    tell_change();
  }
  return stays();
}

WatchedState WatchBoard::state() const {
  const std::lock_guard lock(mutex_);
  WatchedState copy = state_;
  copy.running_seconds = in_step_ ? seconds_of_step() : 0.0;
  copy.curve = curve_.points();
  return copy;
}

WatchedState WatchBoard::look() {
  {
    const std::lock_guard lock(mutex_);
    looked_at_ = clock_->now();
    end_is_seen_ = state_.phase == WatchPhase::Ended;
    changed_.notify_all();
  }
  return state();
}

bool WatchBoard::wait_for_change(std::uint64_t& seen,
                                 std::chrono::milliseconds rest,
                                 std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  clock_->wait_until(
      changed_, lock, clock_->now() + rest, [&] { return state_.phase == WatchPhase::Ended; });
  const bool changed =
      clock_->wait_until(changed_, lock, clock_->now() + limit, [&] { return version_ != seen; });
  seen = version_;
  return changed;
}

WatchBoard::Follower::Follower(WatchBoard& board) : board_(board) {
  const std::lock_guard lock(board_.mutex_);
  ++board_.followers_;
}

WatchBoard::Follower::~Follower() {
  const std::lock_guard lock(board_.mutex_);
  --board_.followers_;
  board_.changed_.notify_all();
}

void WatchBoard::wait_for_followers(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  const bool is_polled = clock_->now() - looked_at_ < kAttention;
  clock_->wait_until(changed_, lock, clock_->now() + limit, [&] {
    return followers_ == 0 && (!is_polled || end_is_seen_);
  });
}

double WatchBoard::seconds_of_step() const {
  return std::chrono::duration<double>(clock_->now() - step_begun_).count();
}

void WatchBoard::tell_change() {
  ++version_;
  changed_.notify_all();
}

void WatchBoard::count_bytes(const MeasuredStep& timeline) {
  const auto& rows = state_.run.ranks_of_rows;
  if (routes_.empty() || timeline.rows.size() != rows.size()) {
    return;
  }
  for (std::size_t to = 0; to < rows.size(); ++to) {
    for (const MeasuredTask& task : timeline.rows[to].tasks) {
      for (const MeasuredInput& input : task.inputs) {
        if (!input.from_row || rows[to].empty() ||
            rows[static_cast<std::size_t>(*input.from_row)].empty()) {
          continue;
        }
        const auto from =
            static_cast<std::size_t>(rows[static_cast<std::size_t>(*input.from_row)].front());
        const auto rank = static_cast<std::size_t>(rows[to].front());
        if (from >= routes_.size() || rank >= routes_[from].size()) {
          continue;
        }
        const Route route = routes_[from][rank];
        auto found = std::ranges::find(state_.bytes, route, &RouteBytes::route);
        if (found == state_.bytes.end()) {
          found = state_.bytes.insert(found, {route, 0});
        }
        // The ranks of a row receive the same shapes for their own samples.
        found->bytes +=
            static_cast<std::int64_t>(input.bytes) * static_cast<std::int64_t>(rows[to].size());
      }
    }
  }
}

}  // namespace stagecraft
