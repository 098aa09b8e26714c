#include "stagecraft/actors/trainer/state/recovery.h"

#include <utility>
#include <vector>

#include "stagecraft/actors/executor/mirror/mirror_keeper.h"

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

}  // namespace stagecraft
