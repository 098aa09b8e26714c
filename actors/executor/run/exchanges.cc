#include "stagecraft/actors/executor/run/exchanges.h"

#include <algorithm>
#include <numeric>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/commit/group_sum.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using Sizes = std::vector<std::int64_t>;
using Crossing = Exchanges::Crossing;

/// Returns the sizes of a value that the exchange moves, as a rank runs the chunk.
/// Errors: PlanInvalid for a value that it does not have, or that has no samples.
const Sizes& border_sizes(const Instruction& exchange,
                          const StageProgram& stage,
                          std::size_t value) {
  const Chunk& chunk = stage.chunks[static_cast<std::size_t>(exchange.chunks.first)];
  const bool outputs = (exchange.task.kind == CellKind::Forward) == exchange.returns;
  const std::vector<ValueId>& border = outputs ? chunk.outputs : chunk.inputs;
  if (value >= border.size() || stage.at(border[value]).sizes.size() < 2) {
    throw Error(Errc::PlanInvalid,
                fmt::format("ranks exchange value {} of chunk {}: expected one with experts in "
                            "dimension 0 and samples in dimension 1, in every shape",
                            value,
                            exchange.chunks.first));
  }
  return stage.at(border[value]).sizes;
}

/// Returns how a value of the rank at position `self` crosses.
/// Errors: PlanInvalid.
Crossing crossing_of(const Instruction& exchange,
                     const Exchanges::Stages& stages,
                     std::size_t self,
                     std::size_t value) {
  const Sizes& whole = border_sizes(exchange, *stages[self]->program, value);
  const auto ranks = std::ssize(stages);
  Crossing crossing;
  for (const StageRuntime* stage : stages) {
    const Sizes& sizes = border_sizes(exchange, *stage->program, value);
    Sizes alike = sizes;
    alike[1] = whole[1];
    if (alike != whole || whole[0] % ranks != 0) {
      throw Error(Errc::PlanInvalid,
                  fmt::format("{} ranks exchange values of sizes [{}] and [{}]: expected experts "
                              "for each rank in dimension 0, and no difference but that of samples "
                              "in dimension 1",
                              ranks,
                              fmt::join(whole, ", "),
                              fmt::join(sizes, ", ")));
    }
    crossing.samples.push_back(sizes[1]);
  }
  crossing.most = std::ranges::max(crossing.samples);
  Sizes gathered = whole;
  gathered[0] /= ranks;
  gathered[1] = std::reduce(crossing.samples.begin(), crossing.samples.end());
  crossing.before = exchange.returns ? gathered : whole;
  crossing.after = exchange.returns ? whole : gathered;
  return crossing;
}

/// Returns the value with so many samples; those that it lacks are zero.
at::Tensor padded(const at::Tensor& value, std::int64_t samples) {
  Sizes lacking = value.sizes().vec();
  lacking[1] = samples - lacking[1];
  return lacking[1] == 0 ? value : at::cat({value, at::zeros(lacking, value.options())}, 1);
}

/// Returns the value as equal parts for the ranks, one after the other, in one dimension.
at::Tensor by_rank(const at::Tensor& value, const Crossing& crossing, bool returns) {
  if (!returns) {
    return padded(value, crossing.most).reshape(-1);  // experts of one rank are neighbors
  }
  std::vector<at::Tensor> parts = value.split_with_sizes(crossing.samples, 1);
  for (at::Tensor& part : parts) {
    part = padded(part, crossing.most);
  }
  return at::stack(parts).reshape(-1);
}

/// Returns the received parts, one of each rank, as the value that they are (keeps XC-1).
at::Tensor joined(const at::Tensor& received, const Crossing& crossing, bool returns) {
  Sizes sizes = crossing.after;
  sizes[1] = crossing.most;
  if (returns) {
    return received.view(sizes).narrow(1, 0, crossing.after[1]).contiguous();
  }
  sizes.insert(sizes.begin(), std::ssize(crossing.samples));
  std::vector<at::Tensor> parts = received.view(sizes).unbind();
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    parts[rank] = parts[rank].narrow(1, 0, crossing.samples[rank]);
  }
  return at::cat(parts, 1).contiguous();
}

}  // namespace

Exchanges::Exchanges(const PlanShare& share, Collective& collective)
    : share_(share), collective_(collective) {}

void Exchanges::begin_step(const Sequence& tags) {
  tags_ = tags;
  next_.clear();
}

void Exchanges::start(const Instruction& exchange, const Stages& stages, SavedStage& saved) {
  const at::NoGradGuard no_grad;
  const Group group = group_of(share_, exchange.group);
  const std::size_t self = position_in(group);
  std::int32_t& next = next_.try_emplace(exchange.group, kFirstExchange).first->second;
  std::vector<Moved>& moved = started_[{exchange.group, exchange.round}];
  std::vector<at::Tensor>& values = stages[self]->exchanged(exchange, saved);
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (!values[v].defined()) {
      continue;
    }
    const at::Tensor value = std::move(values[v]);
    Crossing crossing = crossing_of(exchange, stages, self, v);
    if (value.sizes() != crossing.before) {
      throw Error(Errc::PlanInvalid,
                  fmt::format("ranks exchange a value of sizes {}: expected [{}]",
                              c10::str(value.sizes()),
                              fmt::join(crossing.before, ", ")));
    }
    Sequence sequence = tags_;
    sequence.number = next++;
    auto pending = collective_.all_to_all(
        group, sequence, by_rank(value.detach(), crossing, exchange.returns));
    moved.push_back({.position = v,
                     .crossing = std::move(crossing),
                     .requires_grad = value.requires_grad(),
                     .pending = std::move(pending)});
  }
}

void Exchanges::finish(const Instruction& exchange,
                       const Stages& stages,
                       SavedStage& saved,
                       Deadline deadline) {
  const at::NoGradGuard no_grad;
  const StageRuntime& stage = *stages[position_in(group_of(share_, exchange.group))];
  const auto moved = started_.extract({exchange.group, exchange.round});
  std::vector<at::Tensor>& values = stage.exchanged(exchange, saved);
  for (Moved& one : moved.mapped()) {
    values[one.position] = joined(one.pending->wait(deadline), one.crossing, exchange.returns)
                               .requires_grad_(one.requires_grad);
  }
  stage.take_exchanged(exchange, saved);
}

std::size_t Exchanges::position_in(const Group& group) const {
  return static_cast<std::size_t>(std::ranges::find(group.ranks, share_.rank.rank) -
                                  group.ranks.begin());
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
