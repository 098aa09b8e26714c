#include "stagecraft/actors/trainer/state/living_copies.h"

#include <functional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using Names = std::set<std::string>;

Names names_of(const std::vector<StateListing>& listings) {
  Names names;
  for (const StateListing& listing : listings) {
    names.insert(listing.names.begin(), listing.names.end());
  }
  return names;
}

/// Takes the names that the rank has out of `missing`. Returns whether it had any of them.
bool find_in(const StateListing& listing, Names& missing) {
  bool found = false;
  for (const std::string& name : listing.names) {
    found = missing.erase(name) > 0 || found;
  }
  return found;
}

std::string text_of(const std::vector<StateListing>& listings) {
  std::vector<std::string> ranks;
  for (const StateListing& listing : listings) {
    ranks.push_back(
        listing.updates == kNoWeights
            ? fmt::format("{} none", peer_name(listing.rank))
            : fmt::format("{} those after {} updates", peer_name(listing.rank), listing.updates));
  }
  return fmt::to_string(fmt::join(ranks, ", "));
}

}  // namespace

LivingCopies choose_living_copies(const std::vector<StateListing>& listings) {
  std::set<std::int64_t, std::greater<>> candidates;
  for (const StateListing& listing : listings) {
    if (listing.updates != kNoWeights) {
      candidates.insert(listing.updates);
    }
  }
  std::string lost;
  for (const std::int64_t updates : candidates) {
    LivingCopies found{.updates = updates, .sources = {}};
    Names missing = names_of(listings);
    for (const StateListing& listing : listings) {
      if (listing.updates == updates && find_in(listing, missing)) {
        found.sources.push_back(listing.rank);
      }
    }
    if (missing.empty()) {
      return found;
    }
    lost = *missing.begin();
  }
  throw Error(Errc::WorkerLost,
              fmt::format("there is no state of which the ranks together have all weights{}: load "
                          "a checkpoint. Weights are left of: {}",
                          lost.empty() ? "" : fmt::format("; no rank has {}", lost),
                          text_of(listings)));
}

}  // namespace stagecraft
