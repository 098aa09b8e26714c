#include "stagecraft/scheduler/search/failed_states.h"

#include <algorithm>

namespace stagecraft {
namespace {

/// Mixes a word into a running hash (the finalizer of SplitMix64).
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash += word + 0x9e3779b97f4a7c15U;
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9U;
  hash = (hash ^ (hash >> 27U)) * 0x94d049bb133111ebU;
  return hash ^ (hash >> 31U);
}

/// Returns whether none of the first times is later than its counterpart.
bool none_later(const std::int32_t* times, const std::int32_t* others, std::size_t count) {
  return std::equal(
      times, times + count, others, [](std::int32_t a, std::int32_t b) { return a <= b; });
}

}  // namespace

FailedStates::Key FailedStates::key_of(const std::vector<int>& progress) {
  Key key{0x243f6a8885a308d3U, 0x13198a2e03707344U};
  for (const int number : progress) {
    key.high = mixed(key.high, static_cast<std::uint64_t>(number));
    key.low = mixed(key.low ^ key.high, static_cast<std::uint64_t>(number));
  }
  return key;
}

bool FailedStates::covers(const Key& key, const std::vector<std::int32_t>& times) const {
  const auto found = first_.find(key);
  std::uint32_t state = found == first_.end() ? kNone : found->second;
  while (state != kNone) {
    const std::int32_t* known = numbers_.data() + state;
    if (none_later(known + 1, times.data(), times.size())) {
      return true;
    }
    state = static_cast<std::uint32_t>(*known);
  }
  return false;
}

void FailedStates::add(const Key& key, const std::vector<std::int32_t>& times) {
  const auto found = first_.find(key);
  if (found == first_.end() && first_.size() >= kMostKeys) {
    return;
  }
  std::uint32_t& first =
      found == first_.end() ? first_.emplace(key, kNone).first->second : found->second;
  for (std::uint32_t state = first; state != kNone;) {
    std::int32_t* known = numbers_.data() + state;
    if (none_later(times.data(), known + 1, times.size())) {  // replaces it
      std::copy(times.begin(), times.end(), known + 1);
      return;
    }
    state = static_cast<std::uint32_t>(*known);
  }
  if (numbers_.size() + times.size() + 1 > kMostNumbers) {
    return;
  }
  const auto place = static_cast<std::uint32_t>(numbers_.size());
  numbers_.push_back(static_cast<std::int32_t>(first));
  numbers_.insert(numbers_.end(), times.begin(), times.end());
  first = place;
}

}  // namespace stagecraft
