#include "stagecraft/futures/collective/over_transport.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// Keeps TG-1: group g has edge -1 - g; the number within the step takes the place of the
/// microbatch.
Tag tag_of(const Group& group, const Sequence& sequence) {
  return {.plan = sequence.plan,
          .epoch = sequence.epoch,
          .submission = sequence.submission,
          .edge = EdgeId{-1 - group.id},
          .microbatch = Microbatch{sequence.number}};
}

void check_group(const Group& group, Rank self) {
  SC_CHECK(group.id >= 0, "group " + std::to_string(group.id) + " has no edge of its own");
  SC_CHECK(std::ranges::adjacent_find(group.ranks, std::greater_equal<>{}) == group.ranks.end(),
           "the ranks of a group are distinct and ascending");
  SC_CHECK(std::ranges::binary_search(group.ranks, self),
           "rank " + to_string(self) + " calls a collective of a group it is not in");
}

[[noreturn]] void throw_timeout(const Group& group,
                                const Sequence& sequence,
                                const std::vector<Arrival>& arrivals) {
  std::string missing;
  for (const auto& [rank, future] : arrivals) {
    if (!future.ready()) {
      missing += (missing.empty() ? "" : ", ") + to_string(rank);
    }
  }
  Error error(Errc::ClusterTimeout,
              fmt::format("all_gather {} of group {} still lacked rank {} at its deadline: it "
                          "failed, is slower than the deadline allows, or never called",
                          sequence.number,
                          group.id,
                          missing));
  ErrorContext context;
  context.peer = "rank " + missing;
  throw error.with(context);
}

}  // namespace

TransportCollective::TransportCollective(std::shared_ptr<Transport> transport,
                                         std::shared_ptr<WaitBoard> board)
    : transport_(std::move(transport)), board_(std::move(board)) {}

std::vector<at::Tensor> TransportCollective::all_gather(const Group& group,
                                                        const Sequence& sequence,
                                                        at::Tensor contribution,
                                                        Deadline deadline) {
  const Rank self = transport_->self();
  check_group(group, self);
  const Tag tag = tag_of(group, sequence);
  std::vector<Arrival> arrivals;
  for (const Rank rank : group.ranks) {
    if (rank != self) {
      transport_->send(rank, tag, contribution);
      arrivals.emplace_back(rank, transport_->receive(rank, tag));
    }
  }
  if (!board_->wait(arrivals, deadline)) {
    throw_timeout(group, sequence, arrivals);
  }
  std::vector<at::Tensor> gathered;
  auto arrival = arrivals.begin();
  for (const Rank rank : group.ranks) {
    gathered.push_back(rank == self ? contribution : (arrival++)->second.get());
  }
  return gathered;
}

}  // namespace stagecraft
