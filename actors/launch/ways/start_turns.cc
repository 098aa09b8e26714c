#include "stagecraft/actors/launch/ways/start_turns.h"

#include <algorithm>

namespace stagecraft {

std::vector<int> start_turns(const std::vector<Host>& hosts, std::span<const StartState> places) {
  std::vector<int> turns;
  std::size_t begin = 0;
  const auto take = [&](std::size_t end, std::int64_t most) {
    for (; begin < end; ++begin) {
      if (places[begin] == StartState::Queued && most-- > 0) {
        turns.push_back(static_cast<int>(begin));
      }
    }
  };
  for (const Host& host : hosts) {
    const auto here = places.subspan(begin).first(
        std::min(places.size() - begin, static_cast<std::size_t>(host.slots)));
    take(begin + here.size(), kKnocking - std::ranges::count(here, StartState::Knocking));
  }
  take(places.size(), static_cast<std::int64_t>(places.size()));
  return turns;
}

}  // namespace stagecraft
