#include "stagecraft/tests/faults/actor_rounds.h"

#include <algorithm>
#include <stdexcept>

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "stagecraft/tests/faults/checked_training.h"

namespace stagecraft::tests {
namespace {

constexpr std::int64_t kElements = 4096;

bool has(const std::vector<Rank>& ranks, Rank rank) {
  return std::ranges::find(ranks, rank) != ranks.end();
}

}  // namespace

at::Tensor Exchange::part(std::int64_t number) const {
  return at::full({kElements}, number, at::kLong);
}

std::int64_t Exchange::take(const at::Tensor& part) {
  const auto number = part[0].item<std::int64_t>();
  if (part.numel() != kElements || !part.eq(number).all().item<bool>()) {
    throw std::runtime_error("a part is not whole");
  }
  ++taken_;
  return number;
}

ActorRounds::ActorRounds(const Cluster& cluster)
    : cluster_(cluster), taken_(static_cast<std::size_t>(cluster.ranks())) {
  for (int rank = 0; rank < cluster.ranks(); ++rank) {
    actors_.push_back(cluster_.spawn<Exchange>(on(Rank(rank))));
  }
}

Rank ActorRounds::next(Rank rank) const {
  return Rank((rank.value + 1) % cluster_.ranks());
}

void ActorRounds::begin(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (int r = 0; r < cluster_.ranks(); ++r) {
      const Rank maker(r), taker = next(maker);
      const auto part = actors_[maker.index()].call<&Exchange::part>(number_);
      calls_.push_back(
          {maker, taker, number_++, actors_[taker.index()].call<&Exchange::take>(part)});
    }
  }
}

void ActorRounds::check(const std::vector<Rank>& lost, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (const Call& call : calls_) {
    const std::string name = fmt::format("the call with part {} of rank {} at rank {}",
                                         call.number,
                                         call.maker.value,
                                         call.taker.value);
    require(call.outcome.wait_until(deadline), name + " has no outcome");
    try {
      require(call.outcome.get() == call.number, name + " took another part");
      ++taken_[call.taker.index()];
    } catch (const Error& error) {
      require(has(lost, call.maker) || has(lost, call.taker),
              fmt::format("{} failed and needs no lost rank: {}", name, error.what()));
      require(error.code() == Errc::WorkerLost && error.context().rank &&
                  has(lost, *error.context().rank),
              fmt::format("{} does not name the lost rank: {}", name, error.what()));
    }
  }
  calls_.clear();
  check_counts(lost, deadline);
}

/// Each part was taken once, where the call has succeeded, and not at all where it has failed.
void ActorRounds::check_counts(const std::vector<Rank>& lost, Deadline deadline) {
  for (std::size_t r = 0; r < actors_.size(); ++r) {
    if (has(lost, Rank(r))) {
      continue;
    }
    const Future<std::int64_t> answer = actors_[r].call<&Exchange::taken>();
    require(answer.wait_until(deadline), fmt::format("the actor of rank {} does not answer", r));
    const std::int64_t counted = answer.get();
    require(counted == taken_[r],
            fmt::format("the actor of rank {} took {} parts, and {} calls have succeeded",
                        r,
                        counted,
                        taken_[r]));
  }
}

void ActorRounds::replace(const std::vector<Rank>& lost) {
  for (const Rank rank : lost) {
    actors_[rank.index()] = cluster_.spawn<Exchange>(on(rank));
    taken_[rank.index()] = 0;
  }
}

}  // namespace stagecraft::tests
