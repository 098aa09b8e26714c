#include "stagecraft/actors/executor/run/overlap_group.h"

namespace stagecraft {

OverlapGroup::OverlapGroup(const std::vector<Instruction>& list, std::size_t begin)
    : list_(&list), end_(begin) {
  for (; end_ < list.size() && list[end_].overlap == list[begin].overlap; ++end_) {
    if (end_ == begin || list[end_].task != list[end_ - 1].task) {
      left_.push_back({end_, end_});
    }
    left_.back().end = end_ + 1;
  }
}

bool OverlapGroup::may_go(std::size_t block) const {
  const Task& task = (*list_)[left_[block].begin].task;
  for (std::size_t earlier = 0; earlier < block; ++earlier) {
    const Task& other = (*list_)[left_[earlier].begin].task;
    if (other.stage == task.stage &&
        (other.kind == CellKind::Forward) == (task.kind == CellKind::Forward)) {
      return false;  // keeps OG-1
    }
  }
  return true;
}

OverlapGroup::Block OverlapGroup::take(const std::function<bool(const Block&)>& has_arrived) {
  std::size_t next = 0;
  for (std::size_t b = 0; b < left_.size(); ++b) {
    if (may_go(b) && has_arrived(left_[b])) {
      next = b;
      break;
    }
  }
  const Block taken = left_[next];
  left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(next));
  return taken;
}

}  // namespace stagecraft
