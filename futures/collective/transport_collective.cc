#include "stagecraft/futures/collective/transport_collective.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/futures/collective/exchange.h"
#include "stagecraft/futures/collective/pending_gather.h"
#include "stagecraft/futures/collective/pending_sum.h"

namespace stagecraft {
namespace {

using collective::check_start;
using collective::PendingGather;
using collective::PendingSum;

}  // namespace

TransportCollective::TransportCollective(std::shared_ptr<Transport> transport,
                                         std::shared_ptr<WaitBoard> board,
                                         std::function<void()> begin_thread,
                                         std::shared_ptr<Passing> passing)
    : transport_(std::move(transport)),
      board_(std::move(board)),
      passing_(passing ? std::move(passing) : std::make_shared<Passing>()),
      thread_(std::make_shared<JobThread>(std::move(begin_thread))) {}

std::unique_ptr<PendingResult> TransportCollective::all_reduce(const Group& group,
                                                               const Sequence& sequence,
                                                               at::Tensor buffer) {
  check_start(group, transport_->self(), buffer);
  return std::make_unique<PendingSum>(
      PendingSum::Kind::AllReduce, group, sequence, buffer, transport_, passing_, thread_, board_);
}

std::unique_ptr<PendingResult> TransportCollective::reduce_scatter(const Group& group,
                                                                   const Sequence& sequence,
                                                                   at::Tensor contribution) {
  check_start(group, transport_->self(), contribution);
  return std::make_unique<PendingSum>(PendingSum::Kind::ReduceScatter,
                                      group,
                                      sequence,
                                      contribution,
                                      transport_,
                                      passing_,
                                      thread_,
                                      board_);
}

std::unique_ptr<PendingResult> TransportCollective::all_gather(const Group& group,
                                                               const Sequence& sequence,
                                                               at::Tensor contribution) {
  check_start(group, transport_->self(), contribution);
  const Tag tag = collective::tag_of(group, sequence);
  for (const Rank rank : group.ranks) {
    if (rank != transport_->self()) {
      transport_->lend(rank, tag, passing_->hand_over(contribution));
    }
  }
  return std::make_unique<PendingGather>(
      fmt::format("all_gather {} of group {}", sequence.number, group.id),
      group.ranks,
      collective::receive_all(*transport_, group, tag, passing_->hand_over(contribution)),
      passing_,
      board_);
}

std::unique_ptr<PendingResult> TransportCollective::all_to_all(const Group& group,
                                                               const Sequence& sequence,
                                                               at::Tensor contribution) {
  check_start(group, transport_->self(), contribution);
  const collective::Tensors parts = collective::equal_parts(contribution, group.ranks.size());
  const Tag tag = collective::tag_of(group, sequence);
  at::Tensor own;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (group.ranks[i] == transport_->self()) {
      own = passing_->hand_over(parts[i]);
    } else {
      transport_->send(group.ranks[i], tag, passing_->hand_over(parts[i]));
    }
  }
  return std::make_unique<PendingGather>(
      fmt::format("all_to_all {} of group {}", sequence.number, group.id),
      group.ranks,
      collective::receive_all(*transport_, group, tag, own),
      passing_,
      board_);
}

}  // namespace stagecraft
