#include "stagecraft/scheduler/search/partial_schedule.h"

#include <algorithm>

namespace stagecraft {
PartialSchedule::PartialSchedule(const SearchProblem& problem)
    : problem_(problem),
      microbatches_(problem.microbatches),
      bit_(problem.lanes.size()),
      done_(problem.lanes.size(), 0),
      end_(problem.lanes.size(), std::vector<Ticks>(at(problem.microbatches), 0)),
      devices_(at(problem.devices)),
      order_(at(problem.devices)) {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    std::uint64_t bit = 1;
    for (const int lane : problem.of_device[d]) {
      bit_[at(lane)] = bit;
      bit <<= 1U;
      devices_[d].left += microbatches_;
    }
    left_ += devices_[d].left;
  }
}

void PartialSchedule::start(int lane) {
  const Lane& l = problem_.lanes[at(lane)];
  Device& device = devices_[at(l.device)];
  const Ticks end = earliest(lane) + l.time;
  end_[at(lane)][at(done_[at(lane)]++)] = end;
  device.free = end;
  device.not_next = 0;
  device.starts_by = kNever;
  if (l.takes) {
    device.not_taking = 0;
  }
  device.in_flight += (l.takes ? 1 : 0) - (l.releases ? 1 : 0);
  --device.left;
  --left_;
  order_[at(l.device)].push_back(lane);
}

void PartialSchedule::undo_start(int lane, const Device& before) {
  const std::size_t d = at(problem_.lanes[at(lane)].device);
  order_[d].pop_back();
  devices_[d] = before;
  --done_[at(lane)];
  ++left_;
}

void PartialSchedule::idle(std::size_t d,
                           const std::vector<int>& lanes,
                           int taker,
                           Ticks starts_by) {
  Device& device = devices_[d];
  for (const int lane : lanes) {
    device.not_next |= bit_[at(lane)];
  }
  device.not_taking |= bit_[at(taker)];
  device.starts_by = starts_by;
}

Ticks PartialSchedule::arrival(int lane) const {
  const std::size_t m = at(done_[at(lane)]);
  Ticks last = 0;
  for (const Lane::Feed& feed : problem_.lanes[at(lane)].feeds) {
    if (done_[at(feed.lane)] <= done_[at(lane)]) {
      return kNever;
    }
    last = std::max(last, end_[at(feed.lane)][m] + feed.transfer);
  }
  return last;
}

bool PartialSchedule::fits_cap(int lane) const {
  return !problem_.lanes[at(lane)].takes || device_of(lane).in_flight < problem_.cap;
}

bool PartialSchedule::is_barred(int lane) const {
  const Device& device = device_of(lane);
  return ((device.not_next | device.not_taking) & bit_[at(lane)]) != 0;
}

Ticks PartialSchedule::earliest(int lane) const {
  return std::max(device_of(lane).free, arrival(lane));
}

bool PartialSchedule::leaves_cap(int lane) const {
  const Lane& l = problem_.lanes[at(lane)];
  if (!l.takes) {
    return true;
  }
  int others = 0;
  for (const int other : problem_.of_device[at(l.device)]) {
    if (other != lane && problem_.lanes[at(other)].takes) {
      others += microbatches_ - done_[at(other)];
    }
  }
  return others == 0 || device_of(lane).in_flight + 1 + others <= problem_.cap;
}

bool PartialSchedule::is_stuck(std::size_t d) const {
  if (devices_[d].in_flight < problem_.cap) {
    return false;
  }
  // All lanes of its path took the next activation that can be released.
  return std::ranges::none_of(problem_.of_device[d], [&](int lane) {
    const Lane& l = problem_.lanes[at(lane)];
    return l.takes && std::ranges::all_of(l.path_takes, [&](int other) {
             return done_[at(other)] > done_[at(l.released_by)];
           });
  });
}

Ticks PartialSchedule::makespan() const {
  return std::ranges::max(devices_, {}, &Device::free).free;
}

void PartialSchedule::progress(std::vector<int>& numbers) const {
  numbers.assign(done_.begin(), done_.end());
}

void PartialSchedule::add_bars(std::vector<int>& numbers) const {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    const Device& device = devices_[d];
    if ((device.not_next | device.not_taking) != 0) {
      numbers.push_back(static_cast<int>(d));
      for (const std::uint64_t bars : {device.not_next, device.not_taking}) {
        numbers.push_back(static_cast<int>(bars & 0xffffffffU));
        numbers.push_back(static_cast<int>(bars >> 32U));
      }
    }
  }
}

void PartialSchedule::times(const std::vector<Ticks>& from,
                            Ticks horizon,
                            std::vector<std::int32_t>& times) const {
  times.clear();
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d].left > 0) {
      times.push_back(static_cast<std::int32_t>(from[d] - horizon));
      times.push_back(devices_[d].starts_by == kNever
                          ? std::numeric_limits<std::int32_t>::min()
                          : static_cast<std::int32_t>(horizon - devices_[d].starts_by));
    }
  }
  for (std::size_t l = 0; l < done_.size(); ++l) {
    const Lane& lane = problem_.lanes[l];
    const Ticks free = from[at(lane.device)];
    for (const Lane::Feed& feed : lane.feeds) {
      // Results of the device itself are there when the device is free.
      const bool own = problem_.lanes[at(feed.lane)].device == lane.device;
      for (int m = done_[l]; !own && m < done_[at(feed.lane)]; ++m) {
        const Ticks there = std::max(free, end_[at(feed.lane)][at(m)] + feed.transfer);
        times.push_back(static_cast<std::int32_t>(there - horizon));
      }
    }
  }
}

}  // namespace stagecraft
