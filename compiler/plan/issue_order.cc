#include "stagecraft/compiler/plan/issue_order.h"

#include <algorithm>

namespace stagecraft {

IssueOrder::IssueOrder(std::size_t streams, std::size_t instructions)
    : streams_(streams),
      places_(instructions),
      over_(instructions * streams),
      issued_(streams),
      behind_(streams * streams),
      in_group_(streams * streams),
      in_block_(streams * streams),
      over_next_(streams) {}

void IssueOrder::join(Count* into, const Count* other) const {
  for (std::size_t s = 0; s < streams_; ++s) {
    into[s] = std::max(into[s], other[s]);
  }
}

IssueOrder::Place IssueOrder::place_of(const Instruction& next) const {
  const std::size_t stream = next.stream.index();
  const bool in_open_group = goes_on(next);
  const bool in_open_block = in_open_group && open_.task == next.task;
  Place place{.stream = static_cast<std::uint32_t>(stream), .position = issued_[stream]};
  const Count* const behind = &behind_[stream * streams_];
  std::copy(behind, behind + streams_, over_next_.begin());
  if (in_open_block) {
    join(over_next_.data(), &in_block_[stream * streams_]);
  } else if (!in_open_group) {
    join(over_next_.data(), &in_group_[stream * streams_]);
  }
  over_next_[stream] = place.position;
  if (next.overlap >= 0) {
    const int groups = static_cast<int>(group_begin_.size());
    place.group = in_open_group ? groups - 1 : groups;
    place.block = in_open_block ? open_.block : in_open_group ? open_.block + 1 : 0;
    over_next_[stream] = in_open_group ? group_begin_.back()[stream] : issued_[stream];
  }
  for (const InstructionId id : next.waits) {
    if (id.value < 0 || id.index() >= places_.size() || !places_[id.index()].added) {
      continue;
    }
    const Place& waited = places_[id.index()];
    join(over_next_.data(), over(id.index()));
    Count& count = over_next_[waited.stream];
    count = std::max(count,
                     waited.group < 0
                         ? waited.position + 1
                         : group_begin_[static_cast<std::size_t>(waited.group)][waited.stream]);
  }
  return place;
}

bool IssueOrder::is_over(InstructionId earlier, const Instruction& next) const {
  if (std::ranges::find(next.waits, earlier) != next.waits.end()) {
    return true;
  }
  const Place& first = places_[earlier.index()];
  const Place place = place_of(next);
  const bool same_block = place.group >= 0 && place.group == first.group &&
                          place.block == first.block && place.stream == first.stream;
  return same_block || over_next_[first.stream] > first.position;
}

void IssueOrder::leave_group() {
  for (std::size_t i = 0; i < behind_.size(); ++i) {
    behind_[i] = std::max(behind_[i], in_group_[i]);
  }
  std::ranges::fill(in_group_, 0);
  std::ranges::fill(in_block_, 0);
  open_ = {};
}

void IssueOrder::add(const Instruction& instruction) {
  Place place = place_of(instruction);
  if (open_.overlap >= 0 && !goes_on(instruction)) {
    leave_group();
  }
  const std::size_t stream = instruction.stream.index();
  const std::size_t row = stream * streams_;
  if (instruction.overlap < 0) {
    std::ranges::copy(over_next_, behind_.begin() + static_cast<std::ptrdiff_t>(row));
  } else {
    if (open_.overlap < 0) {
      group_begin_.push_back(issued_);
    }
    if (place.block != open_.block) {
      std::ranges::fill(in_block_, 0);
    }
    open_ = {.overlap = instruction.overlap, .task = instruction.task, .block = place.block};
    join(&in_block_[row], over_next_.data());
    join(&in_group_[row], over_next_.data());
  }
  ++issued_[stream];
  place.added = true;
  const std::size_t id = instruction.id.index();
  places_[id] = place;
  std::ranges::copy(over_next_, over_.begin() + static_cast<std::ptrdiff_t>(id * streams_));
}

}  // namespace stagecraft
