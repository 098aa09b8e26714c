#include "stagecraft/futures/collective/exchange.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft::collective {
namespace {

std::string describe(const at::Tensor& tensor) {
  return fmt::format("{} of {}", tensor.numel(), at::toString(tensor.scalar_type()));
}

}  // namespace

void check_start(const Group& group, Rank self, const at::Tensor& buffer) {
  SC_CHECK(group.id >= 0, "expected a group id of 0 or more, found " + std::to_string(group.id));
  SC_CHECK(std::ranges::adjacent_find(group.ranks, std::greater_equal<>{}) == group.ranks.end(),
           "expected the ranks of a group to be distinct and ascending");
  SC_CHECK(std::ranges::binary_search(group.ranks, self),
           "rank " + to_string(self) + " calls a collective of a group without it");
  SC_CHECK(buffer.defined() && buffer.dim() == 1 && buffer.is_contiguous(),
           "expected a flat buffer as contribution: contiguous and of one dimension");
}

Tensors equal_parts(const at::Tensor& buffer, std::size_t count) {
  const auto parts = static_cast<std::int64_t>(count);
  SC_CHECK(buffer.numel() % parts == 0,
           fmt::format("{} elements do not divide into equal parts for {} members: pad the buffer",
                       buffer.numel(),
                       count));
  Tensors result;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t size = buffer.numel() / parts;
    result.push_back(buffer.narrow(0, i * size, size));
  }
  return result;
}

Tag tag_of(const Group& group, const Sequence& sequence, Round round) {
  const std::int32_t number = sequence.number;
  const std::int32_t below = -2 * number - static_cast<std::int32_t>(round);
  return {.plan = sequence.plan,
          .epoch = sequence.epoch,
          .submission = sequence.submission,
          .edge = EdgeId{-1 - group.id},
          .microbatch = Microbatch{round == Round::First ? number : below}};
}

std::vector<Arrival> receive_all(Transport& transport,
                                 const Group& group,
                                 const Tag& tag,
                                 const at::Tensor& own) {
  std::vector<Arrival> arrivals;
  for (const Rank rank : group.ranks) {
    if (rank == transport.self()) {
      Promise<at::Tensor> here;
      here.set_value(own);
      arrivals.emplace_back(rank, here.future());
    } else {
      arrivals.emplace_back(rank, transport.receive(rank, tag));
    }
  }
  return arrivals;
}

void wait_for(WaitBoard& board,
              const std::string& name,
              const std::vector<Arrival>& arrivals,
              Deadline deadline) {
  if (board.wait(arrivals, deadline)) {
    return;
  }
  std::string missing;
  for (const auto& [rank, tensor] : arrivals) {
    if (!tensor.ready()) {
      missing += (missing.empty() ? "" : ", ") + to_string(rank);
    }
  }
  if (missing.empty()) {
    return;  // the last one has arrived after the deadline
  }
  Error error(Errc::ClusterTimeout,
              fmt::format("{} did not hear from rank {} before its deadline: it failed, is too "
                          "slow, or did not start the operation",
                          name,
                          missing));
  ErrorContext context;
  context.peer = "rank " + missing;
  throw error.with(context);
}

Tensors tensors_of(const std::vector<Arrival>& arrivals) {
  Tensors tensors;
  for (const auto& [rank, arrival] : arrivals) {
    tensors.push_back(arrival.get());
  }
  return tensors;
}

void check_alike(const std::string& name, const std::vector<Rank>& ranks, const Tensors& tensors) {
  const at::Tensor& first = tensors.front();
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    SC_CHECK(
        tensors[i].numel() == first.numel() && tensors[i].scalar_type() == first.scalar_type(),
        fmt::format("in {} rank {} sends {}, but rank {} sends {}: the buffers of a collective "
                    "must have the same size and dtype",
                    name,
                    ranks[i].value,
                    describe(tensors[i]),
                    ranks.front().value,
                    describe(first)));
  }
}

}  // namespace stagecraft::collective
