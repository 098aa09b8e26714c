#include "stagecraft/actors/executor/run/transfers.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

Transfers::Transfers(const BoundPlan& plan,
                     std::shared_ptr<Transport> transport,
                     std::shared_ptr<WaitBoard> board,
                     std::chrono::milliseconds patience)
    : plan_(&plan),
      transport_(std::move(transport)),
      board_(std::move(board)),
      patience_(patience),
      received_(plan.list.size()) {}

void Transfers::begin(const Tag& step, LocalRead local) {
  step_ = step;
  local_ = std::move(local);
  for (const std::size_t position : plan_->receives) {
    if (!is_read_here(position)) {
      received_[position] = transport_->receive(bound(position).peer, tag_of(position));
    }
  }
}

bool Transfers::have_arrived(std::size_t begin, std::size_t end) const {
  const auto arrived = [](const Future<at::Tensor>& f) { return !f.valid() || f.ready(); };
  return std::all_of(received_.begin() + static_cast<std::ptrdiff_t>(begin),
                     received_.begin() + static_cast<std::ptrdiff_t>(end),
                     arrived);
}

at::Tensor Transfers::take(std::size_t position) {
  if (is_read_here(position)) {
    return local_(instruction(position).edge, bound(position).tagged);
  }
  const Rank peer = bound(position).peer;
  const Future<at::Tensor> future = std::exchange(received_[position], {});
  if (!future.ready() && !board_->wait({{peer, future}}, board_->clock().now() + patience_)) {
    throw Error(
        Errc::ClusterTimeout,
        fmt::format("nothing arrived from {} within {} s for {}; its worker is stuck or gone",
                    peer_name(peer),
                    std::chrono::duration<double>(patience_).count(),
                    to_string(instruction(position).task)));
  }
  return future.get();
}

void Transfers::send(std::size_t position, at::Tensor tensor) {
  transport_->send(bound(position).peer, tag_of(position), std::move(tensor));
}

const std::vector<RankPair>& Transfers::far_pairs() {
  if (!far_pairs_) {
    std::set<RankPair> pairs;
    const Rank self = transport_->self();
    for (const BoundInstruction& one : plan_->list) {
      const bool sends = one.instruction->op == Op::Send;
      if (is_transfer(one.instruction->op) && one.peer != kDriver &&
          !transport_->hands_over(one.peer)) {
        pairs.emplace(sends ? self : one.peer, sends ? one.peer : self);
      }
    }
    far_pairs_.emplace(pairs.begin(), pairs.end());
  }
  return *far_pairs_;
}

void Transfers::clear() {
  for (const std::size_t position : plan_->receives) {
    received_[position] = {};
  }
}

Tag Transfers::tag_of(std::size_t position) const {
  Tag tag = step_;
  tag.edge = instruction(position).edge;
  tag.microbatch = bound(position).tagged;
  return tag;
}

}  // namespace stagecraft
