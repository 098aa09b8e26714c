#include "stagecraft/compiler/cut/stage_choice.h"

#include <algorithm>
#include <numeric>

namespace stagecraft {

StageChoice::StageChoice(std::vector<StageSet> leads_to, std::size_t groups)
    : leads_to_(std::move(leads_to)),
      open_(groups, StageSet(leads_to_.size(), true)),
      feeders_(groups),
      readers_(groups) {
  for (std::size_t s = 0; s < leads_to_.size(); ++s) {
    leads_to_[s][s] = true;
  }
}

void StageChoice::restrict(std::size_t group, const StageSet& to) {
  for (std::size_t s = 0; s < to.size(); ++s) {
    open_[group][s] = open_[group][s] && to[s];
  }
}

void StageChoice::feed(std::size_t from, std::size_t to) {
  if (from != to) {
    readers_[from].push_back(to);
    feeders_[to].push_back(from);
  }
}

void StageChoice::remove(std::size_t group, std::size_t stage) {
  open_[group][stage] = false;
  removed_.emplace_back(group, stage);
}

/// Removes the stages of a group for which a neighbor has none that fits. Returns whether there
/// were any.
bool StageChoice::fit(std::size_t group, std::size_t neighbor, bool neighbor_feeds) {
  const std::size_t before = removed_.size();
  for (std::size_t s = 0; s < leads_to_.size(); ++s) {
    bool fits = false;
    for (std::size_t other = 0; other < leads_to_.size() && open_[group][s] && !fits; ++other) {
      fits = open_[neighbor][other] && (neighbor_feeds ? leads_to_[other][s] : leads_to_[s][other]);
    }
    if (open_[group][s] && !fits) {
      remove(group, s);
    }
  }
  return removed_.size() != before;
}

/// Returns a group that has no stage left, or the number of groups if there is none.
std::size_t StageChoice::settle(std::vector<std::size_t> changed) {
  const auto is_empty = [this](std::size_t group) {
    return std::ranges::none_of(open_[group], [](bool open) { return open; });
  };
  while (!changed.empty()) {
    const std::size_t group = changed.back();
    changed.pop_back();
    if (is_empty(group)) {
      return group;
    }
    for (const bool feeds : {true, false}) {
      for (const std::size_t neighbor : feeds ? readers_[group] : feeders_[group]) {
        if (fit(neighbor, group, feeds)) {
          changed.push_back(neighbor);
        }
      }
    }
  }
  return open_.size();
}

std::size_t StageChoice::narrow() {
  std::vector<std::size_t> all(open_.size());
  std::iota(all.rbegin(), all.rend(), std::size_t{0});  // visits the first group first
  return settle(std::move(all));
}

bool StageChoice::decide(std::size_t group, int stage) {
  if (!is_open(group, stage)) {
    return false;
  }
  const std::size_t before = removed_.size();
  for (std::size_t s = 0; s < leads_to_.size(); ++s) {
    if (open_[group][s] && s != static_cast<std::size_t>(stage)) {
      remove(group, s);
    }
  }
  if (removed_.size() == before || settle({group}) == open_.size()) {
    return true;
  }
  while (removed_.size() > before) {
    const auto [of, undone] = removed_.back();
    open_[of][undone] = true;
    removed_.pop_back();
  }
  return false;
}

int StageChoice::last_open(std::size_t group) const {
  int last = static_cast<int>(leads_to_.size()) - 1;
  while (last > 0 && !is_open(group, last)) {
    --last;
  }
  return last;
}

}  // namespace stagecraft
