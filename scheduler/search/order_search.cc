#include "stagecraft/scheduler/search/order_search.h"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

/// Mixes a word into a running hash (the finalizer of SplitMix64).
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash += word + 0x9e3779b97f4a7c15U;
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31U);
}

}  // namespace

OrderSearch::OrderSearch(const SearchProblem& problem, std::function<bool()> keep_going)
    : problem_(problem),
      keep_going_(std::move(keep_going)),
      microbatches_(problem.microbatches),
      bit_(problem.lanes.size()),
      release_(problem.lanes.size(), -1),
      done_(problem.lanes.size(), 0),
      end_(problem.lanes.size(), std::vector<Ticks>(index(problem.microbatches), 0)),
      devices_(index(problem.devices)),
      order_(index(problem.devices)) {
  for (std::size_t l = 0; l < problem.lanes.size(); ++l) {
    const Lane& lane = problem.lanes[l];
    shortest_ = std::min(shortest_, lane.time);
    for (std::size_t r = 0; r < problem.lanes.size(); ++r) {
      if (lane.takes && problem.lanes[r].releases && problem.lanes[r].stage == lane.stage) {
        release_[l] = static_cast<int>(r);
      }
    }
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    std::uint64_t bit = 1;
    for (const int lane : problem.of_device[d]) {
      bit_[index(lane)] = bit;
      bit <<= 1U;
      devices_[d].left += microbatches_;
    }
    left_ += devices_[d].left;
  }
}

OrderSearch::Verdict OrderSearch::run(Ticks horizon, std::size_t states) {
  horizon_ = horizon;
  most_states_ = states_ + states;
  stopped_ = false;
  found_.clear();
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

Ticks OrderSearch::arrival(int lane) const {
  const std::size_t m = index(done_[index(lane)]);
  Ticks last = 0;
  for (const Lane::Feed& feed : problem_.lanes[index(lane)].feeds) {
    if (done_[index(feed.lane)] <= done_[index(lane)]) {
      return kNever;
    }
    last = std::max(last, end_[index(feed.lane)][m] + feed.transfer);
  }
  return last;
}

bool OrderSearch::fits_cap(int lane) const {
  const Lane& l = problem_.lanes[index(lane)];
  return !l.takes || devices_[index(l.device)].in_flight < problem_.cap;
}

/// OS-2. A forward moved to the front leaves one more in flight until where it stood; that is
/// within the cap where no other forward comes between, or where all that are left fit.
bool OrderSearch::may_fill_gap(int lane) const {
  const Lane& l = problem_.lanes[index(lane)];
  if (!l.takes) {
    return true;
  }
  const Device& device = devices_[index(l.device)];
  int others = 0;
  for (const int other : problem_.of_device[index(l.device)]) {
    if (other != lane && problem_.lanes[index(other)].takes) {
      others += microbatches_ - done_[index(other)];
    }
  }
  return device.in_flight + 1 + others <= problem_.cap || others == 0;
}

bool OrderSearch::is_stuck(int d) const {
  if (devices_[index(d)].in_flight < problem_.cap) {
    return false;
  }
  // From the last stage back: what is released next there must have run forward on all behind it.
  int ran_behind = microbatches_;
  const std::vector<int>& lanes = problem_.of_device[index(d)];
  for (auto lane = lanes.rbegin(); lane != lanes.rend(); ++lane) {
    if (release_[index(*lane)] < 0) {
      continue;
    }
    const int ran = done_[index(*lane)];
    const int released = done_[index(release_[index(*lane)])];
    if (released < std::min(ran, ran_behind)) {
      return false;
    }
    ran_behind = std::min(ran_behind, ran);
  }
  return true;
}

Ticks OrderSearch::decides(std::size_t d) const {
  const Device& device = devices_[d];
  if (device.left == 0) {
    return kNever;
  }
  if (!device.idle) {
    return device.free;
  }
  Ticks wakes = kNever;
  for (const int lane : problem_.of_device[d]) {
    if (has_left(lane) && (device.barred & bit_[index(lane)]) == 0 && fits_cap(lane)) {
      wakes = std::min(wakes, arrival(lane));
    }
  }
  return wakes;
}

bool OrderSearch::explore() {
  if (left_ == 0) {
    record();
    return true;
  }
  if (stopped()) {
    return false;
  }
  std::size_t first = 0;
  Ticks now = kNever;
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Ticks time = decides(d);
    if (time < now) {
      now = time;
      first = d;
    }
  }
  if (now == kNever) {
    return false;  // all wait for each other
  }
  for (const Device& device : devices_) {
    if (device.idle && device.left > 0 && device.idle_end <= now) {
      return false;  // OS-2
    }
  }
  if (!can_end_in_time(now)) {
    return false;
  }
  const Fingerprint state = fingerprint(now);
  if (const auto known = failed_.find(state);
      known != failed_.end() && known->second >= horizon_ - now) {
    return false;
  }
  if (explore_starts(first, now) || explore_idleness(first, now)) {
    return true;
  }
  if (!stopped_ && (failed_.size() < kMostRemembered || failed_.contains(state))) {
    failed_[state] = horizon_ - now;
  }
  return false;
}

bool OrderSearch::explore_starts(std::size_t d, Ticks now) {
  // Backwards first, as they let others go on and free memory; then forwards of later stages.
  const std::vector<int>& lanes = problem_.of_device[d];
  const auto rank = [&](int lane) {
    const Lane& l = problem_.lanes[index(lane)];
    return l.kind == CellKind::BackwardWeight ? 2 : l.takes ? 1 : 0;
  };
  for (int turn = 0; turn <= 2; ++turn) {
    for (auto lane = lanes.rbegin(); lane != lanes.rend(); ++lane) {
      if (rank(*lane) != turn || !has_left(*lane) || !fits_cap(*lane) ||
          (devices_[d].barred & bit_[index(*lane)]) != 0 || arrival(*lane) > now) {
        continue;
      }
      const Device before = devices_[d];
      start(*lane, now);
      const bool found = !is_stuck(static_cast<int>(d)) && explore();
      undo_start(*lane, before);
      if (found || stopped_) {
        return found;
      }
    }
  }
  return false;
}

bool OrderSearch::explore_idleness(std::size_t d, Ticks now) {
  const Device before = devices_[d];
  Device& device = devices_[d];
  device.idle = true;
  device.free = now;
  bool waits = false;
  Ticks known = kNever;
  for (const int lane : problem_.of_device[d]) {
    if (!has_left(lane)) {
      continue;
    }
    const Ticks arrives = arrival(lane);
    const bool barred = (device.barred & bit_[index(lane)]) != 0;
    if (arrives <= now && !barred) {
      device.barred |= bit_[index(lane)];
    }
    if (arrives <= now && fits_cap(lane) && may_fill_gap(lane) && (!barred || !before.idle)) {
      device.idle_end = std::min(device.idle_end, now + problem_.lanes[index(lane)].time);
    }
    if (arrives > now) {
      waits = waits || fits_cap(lane);
      known = fits_cap(lane) ? std::min(known, arrives) : known;
    }
  }
  Ticks others = kNever;
  for (std::size_t other = 0; other < devices_.size(); ++other) {
    others = other == d ? others : std::min(others, decides(other));
  }
  // What comes is on its way already, or is made by a task that another device starts.
  const bool in_time = std::min(known, others + shortest_) < device.idle_end;
  const bool found = waits && in_time && explore();
  devices_[d] = before;
  return found;
}

void OrderSearch::start(int lane, Ticks now) {
  const Lane& l = problem_.lanes[index(lane)];
  Device& device = devices_[index(l.device)];
  device.barred = 0;
  if (l.feeds_nobody) {  // OS-3
    for (const int other : problem_.of_device[index(l.device)]) {
      if (!problem_.lanes[index(other)].feeds_nobody && has_left(other) && fits_cap(other) &&
          arrival(other) <= now) {
        device.barred |= bit_[index(other)];
      }
    }
  }
  const Ticks end = now + l.time;
  end_[index(lane)][index(done_[index(lane)]++)] = end;
  device.free = end;
  device.idle = false;
  device.idle_end = kNever;
  device.in_flight += (l.takes ? 1 : 0) - (l.releases ? 1 : 0);
  --device.left;
  --left_;
  order_[index(l.device)].push_back(lane);
}

void OrderSearch::undo_start(int lane, const Device& before) {
  const std::size_t d = index(problem_.lanes[index(lane)].device);
  order_[d].pop_back();
  devices_[d] = before;
  --done_[index(lane)];
  ++left_;
}

void OrderSearch::record() {
  found_ = order_;
  makespan_ = 0;
  for (const Device& device : devices_) {
    makespan_ = std::max(makespan_, device.free);
  }
}

bool OrderSearch::can_end_in_time(Ticks now) {
  std::vector<Ticks> from(devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = devices_[d];
    // An idle one goes on with what has yet to come: it is on its way, or nobody has started it.
    from[d] = device.idle ? std::min(decides(d), now + shortest_) : device.free;
  }
  // end_ of a task that has not started: the earliest there can be.
  for (std::size_t m = 0; m < index(microbatches_); ++m) {
    for (std::size_t l = 0; l < problem_.lanes.size(); ++l) {
      if (m < index(done_[l])) {
        continue;
      }
      const Lane& lane = problem_.lanes[l];
      Ticks head = std::max(from[index(lane.device)], problem_.heads[l][m]);
      if (m > 0) {
        head = std::max(head, end_[l][m - 1]);
      }
      for (const Lane::Feed& feed : lane.feeds) {
        head = std::max(head, end_[index(feed.lane)][m] + feed.transfer);
      }
      if (lane.takes && m >= index(problem_.cap)) {
        head = std::max(head, end_[index(release_[l])][m - index(problem_.cap)]);
      }
      end_[l][m] = head + lane.time;
      if (end_[l][m] + problem_.tails[l][m] > horizon_) {
        return false;
      }
    }
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    jobs_.clear();
    for (const int lane : problem_.of_device[d]) {
      const std::size_t l = index(lane);
      const Ticks time = problem_.lanes[l].time;
      for (std::size_t m = index(done_[l]); m < index(microbatches_); ++m) {
        jobs_.push_back({end_[l][m] - time, time, problem_.tails[l][m]});
      }
    }
    if (one_machine_bound(jobs_) > horizon_) {
      return false;
    }
  }
  return true;
}

OrderSearch::Fingerprint OrderSearch::fingerprint(Ticks now) const {
  Fingerprint print{0x243f6a8885a308d3U, 0x13198a2e03707344U};
  const auto add = [&](auto value) {
    print.high = mixed(print.high, static_cast<std::uint64_t>(value));
    print.low = mixed(print.low ^ print.high, static_cast<std::uint64_t>(value));
  };
  for (const Device& device : devices_) {
    if (device.left == 0) {
      continue;
    }
    add(device.idle ? -1 : device.free - now);
    add(device.barred);
    add(device.idle_end == kNever ? -1 : device.idle_end - now);
  }
  for (std::size_t l = 0; l < problem_.lanes.size(); ++l) {
    const Lane& lane = problem_.lanes[l];
    add(done_[l]);
    const Device& device = devices_[index(lane.device)];
    const Ticks counts_from = std::max(now, device.free);
    for (const Lane::Feed& feed : lane.feeds) {
      for (int m = done_[l]; m < done_[index(feed.lane)]; ++m) {
        const Ticks there = end_[index(feed.lane)][index(m)] + feed.transfer;
        add(std::max<Ticks>(0, there - counts_from));
      }
    }
  }
  return print;
}

}  // namespace stagecraft
