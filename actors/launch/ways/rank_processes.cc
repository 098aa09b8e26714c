#include "stagecraft/actors/launch/ways/rank_processes.h"

#include <fmt/format.h>

namespace stagecraft {

bool lives_elsewhere(const SpawnOptions& options, Rank rank) {
  return rank.value >= options.local_ranks;
}

int place_in(const SpawnOptions& options, Rank rank) {
  return (rank.value - options.local_ranks) / options.ranks_per_process;
}

Rank first_rank_in(const SpawnOptions& options, int place) {
  return Rank(options.local_ranks + place * options.ranks_per_process);
}

int places_for(const SpawnOptions& options, int ranks) {
  const Rank last(ranks - 1);
  return lives_elsewhere(options, last) ? place_in(options, last) + 1 : 0;
}

std::string ranks_text(const SpawnOptions& options, int place) {
  const int first = first_rank_in(options, place).value;
  return options.ranks_per_process == 1
             ? fmt::format("rank {}", first)
             : fmt::format("ranks {}-{}", first, first + options.ranks_per_process - 1);
}

}  // namespace stagecraft
