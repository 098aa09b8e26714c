#include "stagecraft/futures/collective/over_transport.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// Combines the members' parts, which are in ascending order of rank. Keeps CL-3: the result is
/// memory of its own, even for a group of one.
using Combine = at::Tensor (*)(const Tensors& parts);

at::Tensor sum(const Tensors& parts) {
  if (parts.size() == 1) {
    return parts[0].clone();
  }
  at::Tensor total = parts[0] + parts[1];
  for (std::size_t i = 2; i < parts.size(); ++i) {
    total.add_(parts[i]);
  }
  return total;
}

at::Tensor concatenation(const Tensors& parts) {
  return at::cat(parts);
}

/// Splits a contribution into the share of each member of a group.
using Share = Tensors (*)(const at::Tensor& contribution, std::size_t members);

Tensors whole_to_each(const at::Tensor& contribution, std::size_t members) {
  return Tensors(members, contribution);
}

Tensors part_to_each(const at::Tensor& contribution, std::size_t members) {
  const auto count = static_cast<std::int64_t>(members);
  SC_CHECK(contribution.numel() % count == 0,
           fmt::format("{} elements do not divide into equal parts for {} members: pad the buffer",
                       contribution.numel(),
                       members));
  const std::int64_t size = contribution.numel() / count;
  Tensors parts;
  for (std::int64_t i = 0; i < count; ++i) {
    parts.push_back(contribution.narrow(0, i * size, size));
  }
  return parts;
}

/// Keeps TG-1: group g has edge -1 - g, and the number within the step takes the place of the
/// microbatch.
Tag tag_of(const Group& group, const Sequence& sequence) {
  return {.plan = sequence.plan,
          .epoch = sequence.epoch,
          .submission = sequence.submission,
          .edge = EdgeId{-1 - group.id},
          .microbatch = Microbatch{sequence.number}};
}

void check_group(const Group& group, Rank self) {
  SC_CHECK(group.id >= 0, "expected a group id of 0 or more, found " + std::to_string(group.id));
  SC_CHECK(std::ranges::adjacent_find(group.ranks, std::greater_equal<>{}) == group.ranks.end(),
           "expected the ranks of a group to be distinct and ascending");
  SC_CHECK(std::ranges::binary_search(group.ranks, self),
           "rank " + to_string(self) + " calls a collective of a group without it");
}

void check_flat(const at::Tensor& contribution) {
  SC_CHECK(contribution.defined() && contribution.dim() == 1 && contribution.is_contiguous(),
           "expected a flat buffer as contribution: contiguous and of one dimension");
}

std::string describe(const at::Tensor& part) {
  return fmt::format("{} of {}", part.numel(), at::toString(part.scalar_type()));
}

/// Completes when all parts are here; the waiting thread combines them.
class PendingParts final : public PendingResult {
 public:
  PendingParts(std::string name,
               std::vector<Arrival> arrivals,
               Combine combine,
               std::shared_ptr<WaitBoard> board)
      : name_(std::move(name)),
        arrivals_(std::move(arrivals)),
        combine_(combine),
        board_(std::move(board)) {}

  [[nodiscard]] at::Tensor wait(Deadline deadline) override {
    const std::vector<Arrival> arrivals = std::exchange(arrivals_, {});
    SC_CHECK(!arrivals.empty(), name_ + " was waited for twice");
    if (!board_->wait(arrivals, deadline)) {
      throw_if_missing(arrivals);
    }
    Tensors parts;
    for (const auto& [rank, part] : arrivals) {
      parts.push_back(part.get());
      check_alike(parts.front(), arrivals.front().first, parts.back(), rank);
    }
    const at::NoGradGuard no_grad;
    return combine_(parts);
  }

 private:
  void check_alike(const at::Tensor& first,
                   Rank first_rank,
                   const at::Tensor& part,
                   Rank rank) const {
    SC_CHECK(
        part.numel() == first.numel() && part.scalar_type() == first.scalar_type(),
        fmt::format("in {} rank {} sends {}, but rank {} sends {}: the buffers of a collective "
                    "must have the same size and dtype",
                    name_,
                    rank.value,
                    describe(part),
                    first_rank.value,
                    describe(first)));
  }

  /// Returns if the last part has arrived between the deadline and now.
  void throw_if_missing(const std::vector<Arrival>& arrivals) const {
    std::string missing;
    for (const auto& [rank, part] : arrivals) {
      if (!part.ready()) {
        missing += (missing.empty() ? "" : ", ") + to_string(rank);
      }
    }
    if (missing.empty()) {
      return;
    }
    Error error(Errc::ClusterTimeout,
                fmt::format("{} did not hear from rank {} before its deadline: it failed, is too "
                            "slow, or did not start the operation",
                            name_,
                            missing));
    ErrorContext context;
    context.peer = "rank " + missing;
    throw error.with(context);
  }

  std::string name_;
  std::vector<Arrival> arrivals_;  // by rank, including its own; empty after the wait
  Combine combine_;
  std::shared_ptr<WaitBoard> board_;
};

}  // namespace

struct TransportCollective::Operation {
  std::string_view name;
  Share share;
  Combine combine;
};

TransportCollective::TransportCollective(std::shared_ptr<Transport> transport,
                                         std::shared_ptr<WaitBoard> board)
    : transport_(std::move(transport)), board_(std::move(board)) {}

std::unique_ptr<PendingResult> TransportCollective::all_reduce(const Group& group,
                                                               const Sequence& sequence,
                                                               at::Tensor contribution) {
  return start({"all_reduce", whole_to_each, sum}, group, sequence, contribution);
}

std::unique_ptr<PendingResult> TransportCollective::reduce_scatter(const Group& group,
                                                                   const Sequence& sequence,
                                                                   at::Tensor contribution) {
  return start({"reduce_scatter", part_to_each, sum}, group, sequence, contribution);
}

std::unique_ptr<PendingResult> TransportCollective::all_gather(const Group& group,
                                                               const Sequence& sequence,
                                                               at::Tensor contribution) {
  return start({"all_gather", whole_to_each, concatenation}, group, sequence, contribution);
}

std::unique_ptr<PendingResult> TransportCollective::all_to_all(const Group& group,
                                                               const Sequence& sequence,
                                                               at::Tensor contribution) {
  return start({"all_to_all", part_to_each, concatenation}, group, sequence, contribution);
}

std::unique_ptr<PendingResult> TransportCollective::start(const Operation& operation,
                                                          const Group& group,
                                                          const Sequence& sequence,
                                                          const at::Tensor& contribution) {
  const Rank self = transport_->self();
  check_group(group, self);
  check_flat(contribution);
  const Tensors shares = operation.share(contribution, group.ranks.size());
  const Tag tag = tag_of(group, sequence);
  std::vector<Arrival> arrivals;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Rank rank = group.ranks[i];
    if (rank == self) {
      Promise<at::Tensor> own;
      own.set_value(shares[i]);
      arrivals.emplace_back(rank, own.future());
    } else {
      transport_->send(rank, tag, shares[i]);
      arrivals.emplace_back(rank, transport_->receive(rank, tag));
    }
  }
  return std::make_unique<PendingParts>(
      fmt::format("{} {} of group {}", operation.name, sequence.number, group.id),
      std::move(arrivals),
      operation.combine,
      board_);
}

}  // namespace stagecraft
