#include "stagecraft/tests/simulate/rank_end.h"

#include <utility>

namespace stagecraft::simulation {

std::shared_ptr<RankEnd> Ends::of(Rank rank) const {
  if (rank == kDriver) {
    return of_driver.lock();
  }
  if (rank.value < 0 || rank.index() >= of_ranks.size()) {
    throw Error(Errc::TransportRefused, peer_name(rank) + " is no peer");
  }
  return of_ranks[rank.index()].lock();
}

void RankEnd::send(Rank to, const Tag& tag, at::Tensor tensor) {
  arrived_.check_open();
  const std::shared_ptr<RankEnd> there = ends_->of(to);
  if (!tensor.defined()) {
    throw Error(Errc::TransportRefused, "an undefined tensor cannot be sent");
  }
  if (there == nullptr) {
    return;  // it has ended, as others will hear
  }
  // Read as late as a transport may (T-2). The other process gets a copy.
  ends_->network.send(
      process_,
      there->process_,
      Plane::Data,
      [there, from = self_, process = process_, tag, tensor = std::move(tensor)] {
        const std::shared_ptr<RankEnd> known = there->ends_->of(from);
        if (from == kDriver || (known != nullptr && known->process_ == process)) {  // keeps DP-9
          there->arrived_.deliver(from, tag, tensor.clone());
        }
      });
}

Route RankEnd::route_to(Rank to) const {
  (void)ends_->of(to);
  return Route::Socket;
}

Future<at::Tensor> RankEnd::receive(Rank from, const Tag& tag) {
  (void)ends_->of(from);
  return arrived_.receive(from, tag);
}

}  // namespace stagecraft::simulation
