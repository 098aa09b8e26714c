#include "stagecraft/actors/executor/run/exchanges.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/commit/group_sum.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Returns these sizes followed by those of `of` from dimension 2 on.
Sizes with_rest(Sizes sizes, at::IntArrayRef of) {
  sizes.insert(sizes.end(), of.begin() + 2, of.end());
  return sizes;
}

/// Errors: PlanInvalid.
void require_parts(const at::Tensor& value, std::int64_t ranks, bool returns) {
  if (value.dim() < 2 || value.size(returns ? 1 : 0) % ranks != 0) {
    throw Error(Errc::PlanInvalid,
                fmt::format("{} ranks exchange values of sizes {}: expected experts in dimension 0 "
                            "and samples in dimension 1",
                            ranks,
                            c10::str(value.sizes())));
  }
}

/// Returns the value as equal parts for the ranks, one after the other, in one dimension.
at::Tensor by_rank(const at::Tensor& value, std::int64_t ranks, bool returns) {
  if (!returns) {
    return value.contiguous().view(-1);  // experts of one rank are neighbors
  }
  const Sizes sizes = with_rest({value.size(0), ranks, value.size(1) / ranks}, value.sizes());
  return value.contiguous().view(sizes).transpose(0, 1).contiguous().view(-1);
}

/// Returns the sizes that the value has after the exchange.
Sizes sizes_after(const at::Tensor& value, std::int64_t ranks, bool returns) {
  const std::int64_t experts = value.size(0), samples = value.size(1);
  return with_rest(
      returns ? Sizes{experts * ranks, samples / ranks} : Sizes{experts / ranks, samples * ranks},
      value.sizes());
}

/// Returns the received parts, one of each rank, as a value of these sizes (keeps XC-1).
at::Tensor joined(const at::Tensor& received,
                  const Sizes& sizes,
                  std::int64_t ranks,
                  bool returns) {
  if (returns) {
    return received.view(sizes);
  }
  const Sizes parts = with_rest({ranks, sizes[0], sizes[1] / ranks}, sizes);
  return received.view(parts).transpose(0, 1).reshape(sizes);
}

}  // namespace

Exchanges::Exchanges(const PlanShare& share, Collective& collective)
    : share_(share), collective_(collective) {}

void Exchanges::begin_step(const Sequence& tags) {
  tags_ = tags;
  next_.clear();
}

void Exchanges::start(const Instruction& exchange, const StageRuntime& stage, SavedStage& saved) {
  const at::NoGradGuard no_grad;
  const Group group = group_of(share_, exchange.group);
  const std::int64_t ranks = std::ssize(group.ranks);
  std::int32_t& next = next_.try_emplace(exchange.group, kFirstExchange).first->second;
  std::vector<Moved>& moved = started_[{exchange.group, exchange.round}];
  std::vector<at::Tensor>& values = stage.exchanged(exchange, saved);
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (!values[v].defined()) {
      continue;
    }
    const at::Tensor value = std::move(values[v]);
    require_parts(value, ranks, exchange.returns);
    Sequence sequence = tags_;
    sequence.number = next++;
    moved.push_back({.position = v,
                     .sizes = sizes_after(value, ranks, exchange.returns),
                     .requires_grad = value.requires_grad(),
                     .pending = collective_.all_to_all(
                         group, sequence, by_rank(value.detach(), ranks, exchange.returns))});
  }
}

void Exchanges::finish(const Instruction& exchange,
                       const StageRuntime& stage,
                       SavedStage& saved,
                       Deadline deadline) {
  const at::NoGradGuard no_grad;
  const auto ranks = static_cast<std::int64_t>(group_of(share_, exchange.group).ranks.size());
  const auto moved = started_.extract({exchange.group, exchange.round});
  std::vector<at::Tensor>& values = stage.exchanged(exchange, saved);
  for (Moved& one : moved.mapped()) {
    values[one.position] = joined(one.pending->wait(deadline), one.sizes, ranks, exchange.returns)
                               .requires_grad_(one.requires_grad);
  }
  stage.take_exchanged(exchange, saved);
}

void Exchanges::drop() {
  for (auto& [round, moved] : started_) {
    for (Moved& one : moved) {
      one.pending->abandon();
    }
  }
  started_.clear();
}

}  // namespace stagecraft
