#include "stagecraft/actors/trainer/state/recovery.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/executor/mirror/mirror_keeper.h"
#include "stagecraft/actors/trainer/state/living_copies.h"

namespace stagecraft {

std::int64_t recover(Crew& crew, TrainerState& state) {
  std::vector<MirrorStock> stocks;
  for (StateListing& listing : state.list()) {
    stocks.push_back({.own = std::move(listing.own), .kept = std::move(listing.kept)});
  }
  const RecoveryPoint point = choose_recovery(stocks);
  state.replace_by([&] { crew.take_mirrors(point); }, point.updates);
  return point.updates;
}

std::int64_t recover_from_copies(Crew& crew, TrainerState& state) {
  const std::vector<StateListing> listings = state.list();
  const LivingCopies copies = choose_living_copies(listings);
  std::map<std::string, at::Tensor> by_name;
  for (const std::vector<StateTensor>& of_rank : crew.read_state(copies.sources)) {
    for (const StateTensor& tensor : of_rank) {
      by_name.emplace(tensor.name, tensor.tensor);  // of several ranks, the first
    }
  }
  std::vector<std::vector<StateTensor>> by_rank;
  for (const StateListing& listing : listings) {
    by_rank.emplace_back();
    for (const std::string& name : listing.names) {
      by_rank.back().push_back({name, by_name.at(name)});
    }
  }
  state.replace_by([&] { crew.write_state(by_rank, copies.updates); }, copies.updates);
  return copies.updates;
}

}  // namespace stagecraft
