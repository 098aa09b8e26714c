#include "stagecraft/compiler/plan/issue_order.h"

#include <algorithm>

namespace stagecraft {
namespace {

std::size_t index(Stream stream) {
  return static_cast<std::size_t>(stream);
}

}  // namespace

void IssueOrder::join(Counts& into, const Counts& other) {
  for (std::size_t s = 0; s < kStreams; ++s) {
    into[s] = std::max(into[s], other[s]);
  }
}

bool IssueOrder::goes_on(const OpenGroup& group, const Instruction& next) {
  return group.overlap >= 0 && group.overlap == next.overlap;
}

IssueOrder::Place IssueOrder::place_of(const Instruction& next) const {
  const std::size_t stream = index(next.stream);
  const bool in_open_group = goes_on(open_, next);
  const bool in_open_block = in_open_group && open_.task == next.task;
  Place place{.stream = next.stream, .position = issued_[stream], .over = behind_[stream]};
  if (in_open_block) {
    join(place.over, in_block_[stream]);
  } else if (!in_open_group) {
    join(place.over, in_group_[stream]);
  }
  if (next.overlap >= 0) {
    place.group = in_open_group ? groups_ - 1 : groups_;
    place.block = in_open_block ? open_.block : in_open_group ? open_.block + 1 : 0;
    place.group_begin = in_open_group ? open_.begin : issued_;
  }
  place.over[stream] = next.overlap >= 0 ? place.group_begin[stream] : place.position;
  for (const InstructionId id : next.waits) {
    const auto found = places_.find(id);
    if (found == places_.end()) {
      continue;
    }
    const Place& waited = found->second;
    join(place.over, waited.over);
    std::size_t& count = place.over[index(waited.stream)];
    count = std::max(
        count, waited.group < 0 ? waited.position + 1 : waited.group_begin[index(waited.stream)]);
  }
  return place;
}

bool IssueOrder::is_over(InstructionId earlier, const Instruction& next) const {
  if (std::ranges::find(next.waits, earlier) != next.waits.end()) {
    return true;
  }
  const Place& first = places_.at(earlier);
  const Place place = place_of(next);
  const bool same_block = place.group >= 0 && place.group == first.group &&
                          place.block == first.block && place.stream == first.stream;
  return same_block || place.over[index(first.stream)] > first.position;
}

void IssueOrder::leave_group() {
  for (std::size_t s = 0; s < kStreams; ++s) {
    join(behind_[s], in_group_[s]);
  }
  in_group_ = {};
  in_block_ = {};
  open_ = {};
}

void IssueOrder::add(const Instruction& instruction) {
  const Place place = place_of(instruction);
  if (open_.overlap >= 0 && !goes_on(open_, instruction)) {
    leave_group();
  }
  const std::size_t stream = index(instruction.stream);
  if (instruction.overlap < 0) {
    behind_[stream] = place.over;
  } else {
    if (open_.overlap < 0) {
      ++groups_;
    }
    if (place.block != open_.block) {
      in_block_ = {};
    }
    open_ = {.overlap = instruction.overlap,
             .task = instruction.task,
             .begin = place.group_begin,
             .block = place.block};
    join(in_block_[stream], place.over);
    join(in_group_[stream], place.over);
  }
  ++issued_[stream];
  places_.emplace(instruction.id, place);
}

}  // namespace stagecraft
