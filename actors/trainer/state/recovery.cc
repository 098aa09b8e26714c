#include "stagecraft/actors/trainer/state/recovery.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/mirror/mirror_keeper.h"
#include "stagecraft/actors/trainer/state/living_copies.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Returns whether a rank of the trainer before has left copies of its own states.
bool has_left_copies(const StateListing& listing) {
  return !listing.facts.empty();
}

RecoveryPoint point_of_mirrors(const std::vector<StateListing>& listings) {
  const bool are_left = std::ranges::any_of(listings, &has_left_copies);
  std::vector<MirrorStock> stocks;
  for (const StateListing& listing : listings) {
    stocks.push_back(are_left && !has_left_copies(listing)
                         ? MirrorStock()
                         : MirrorStock{.own = listing.own, .kept = listing.kept});
  }
  return choose_recovery(stocks);
}

/// Returns the facts of a state that ranks of a trainer before have left; nothing if it is of this
/// one. Errors: Internal if a rank has left one without facts.
std::optional<std::string> facts_of(const std::vector<StateListing>& listings,
                                    std::int64_t updates) {
  for (const StateListing& listing : listings) {
    const auto found = std::ranges::find(listing.own, updates);
    if (has_left_copies(listing) && found != listing.own.end()) {
      const auto position = static_cast<std::size_t>(found - listing.own.begin());
      if (position >= listing.facts.size()) {
        throw Error(Errc::Internal,
                    peer_name(listing.rank) + " has left a state without its facts");
      }
      return listing.facts[position];
    }
  }
  return std::nullopt;
}

std::int64_t recover_from_copies(Crew& crew,
                                 TrainerState& state,
                                 const std::vector<StateListing>& listings) {
  const LivingCopies copies = choose_living_copies(listings);
  std::map<std::string, at::Tensor> by_name;
  for (const std::vector<StateTensor>& of_rank : crew.read_state(all_of(copies.sources))) {
    for (const StateTensor& tensor : of_rank) {
      by_name.emplace(tensor.name, tensor.tensor);  // of several ranks, the first
    }
  }
  const StateSource source = [&](const std::string& name) { return by_name.at(name); };
  const auto write = [&] {
    crew.write_state(
        states_from(listings, source), copies.updates, [&] { return state.facts(copies.updates); });
  };
  state.go_back(write, copies.updates);
  return copies.updates;
}

}  // namespace

Recovery recover(Crew& crew, TrainerState& state, const StateCopies& copies) {
  const std::vector<StateListing> listings = state.list();
  std::optional<RecoveryPoint> point;
  std::optional<Error> no_mirrors;
  try {
    if (copies.in_mirrors) {
      point = point_of_mirrors(listings);
    }
  } catch (const Error& error) {
    if (!copies.of_stages) {
      throw;
    }
    no_mirrors = error;
  }
  if (point) {
    const std::optional<std::string> left = facts_of(listings, point->updates);
    const auto facts = left ? std::optional(unpacked_facts(*left)) : std::nullopt;
    const std::string told = left ? *left : state.facts(point->updates);
    state.go_back([&] { crew.take_mirrors(*point, told); }, point->updates, facts);
    return {.updates = point->updates, .from_mirrors = true, .facts = facts};
  }
  try {
    return {.updates = recover_from_copies(crew, state, listings), .from_mirrors = false};
  } catch (Error& error) {
    if (no_mirrors && error.cause() == nullptr) {
      error.because(*no_mirrors);
    }
    throw;
  }
}

}  // namespace stagecraft
