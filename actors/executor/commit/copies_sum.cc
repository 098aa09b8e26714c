#include "stagecraft/actors/executor/commit/copies_sum.h"

#include <cstdint>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

// Numbers of any type begin at a multiple of two words.
constexpr std::int64_t kWord = 8, kAlignment = 2 * kWord;

std::int64_t words_of(const at::Tensor& buffer) {
  const auto bytes = static_cast<std::int64_t>(buffer.nbytes());
  return (bytes + kAlignment - 1) / kAlignment * kAlignment / kWord;
}

std::vector<at::Tensor> written_buffers(const StageRuntime& stage) {
  std::vector<at::Tensor> written;
  for (std::size_t i = 0; i < stage.program->buffers.size(); ++i) {
    if (stage.program->buffers[i].written) {
      written.push_back(stage.state.buffers[i].detach());
    }
  }
  return written;
}

/// Visits the place of each buffer in the words that hold all of them, one after the other.
template <class Visit>
void with_buffers(const at::Tensor& words, const std::vector<at::Tensor>& buffers, Visit&& visit) {
  const at::Tensor bytes = words.view(at::kByte);
  std::int64_t begin = 0;
  for (const at::Tensor& buffer : buffers) {
    const auto size = static_cast<std::int64_t>(buffer.nbytes());
    visit(bytes.narrow(0, begin, size).view(buffer.scalar_type()).view(buffer.sizes()), buffer);
    begin += words_of(buffer) * kWord;
  }
}

/// Returns the buffers as words of their device; zeros if they are not the first copy's.
at::Tensor packed(const std::vector<at::Tensor>& buffers, bool first) {
  std::int64_t words = 0;
  for (const at::Tensor& buffer : buffers) {
    words += words_of(buffer);
  }
  const at::Tensor all =
      at::zeros({words}, at::TensorOptions(buffers.front().device()).dtype(at::kLong));
  if (first) {
    with_buffers(all, buffers, [](const at::Tensor& place, const at::Tensor& buffer) {
      place.copy_(buffer);
    });
  }
  return all;
}

}  // namespace

CopiesSum::CopiesSum(Group members,
                     std::vector<StageRuntime*> mine,
                     std::size_t bucket,
                     bool first,
                     std::int32_t rounds,
                     bool brings_buffers)
    : members_(std::move(members)),
      mine_(std::move(mine)),
      bucket_(bucket),
      first_(first),
      rounds_(rounds),
      brings_buffers_(brings_buffers) {
  SC_CHECK(!mine_.empty(), "a rank of a group of copies holds one of its stages");
  SC_CHECK(mine_.size() == 1 || !has_shards(), "a rank with a shard holds one copy");
}

void CopiesSum::start(Collective& collective, const Sequence& step, const SumTurn& turn) {
  const at::NoGradGuard no_grad;
  mine_.front()->buckets.hold_gradients(bucket_);
  const std::vector<at::Tensor>& gradients = mine_.front()->buckets.flat_gradients(bucket_);
  Sequence sequence = step;
  for (std::size_t b = 0; b < gradients.size(); ++b) {
    for (std::size_t i = 1; i < mine_.size(); ++i) {
      gradients[b].add_(mine_[i]->buckets.flat_gradients(bucket_)[b]);
    }
    sequence.number = first_number(turn.round) + static_cast<std::int32_t>(b);
    sums_.push_back(has_shards() ? collective.reduce_scatter(members_, sequence, gradients[b])
                                 : collective.all_reduce(members_, sequence, gradients[b]));
  }
  if (turn.last_batch && turn.round == rounds_ - 1) {
    sequence.number = number_of(Exchange::Buffers);
    start_buffers(collective, sequence);
  }
}

bool CopiesSum::has_shards() const {
  return mine_.front()->buckets.has_shards(bucket_);
}

/// Returns the number of a round's first sum among the step's collectives of the group.
std::int32_t CopiesSum::first_number(std::int32_t round) const {
  const std::size_t sums = mine_.front()->buckets.flat_gradients(bucket_).size();
  return round * static_cast<std::int32_t>(sums);
}

/// Returns the number of an exchange that follows the sums.
std::int32_t CopiesSum::number_of(Exchange exchange) const {
  return first_number(rounds_) + static_cast<std::int32_t>(exchange);
}

/// Only the first copy has words other than 0, so their sum is its buffers, and nobody has to look
/// for them.
void CopiesSum::start_buffers(Collective& collective, const Sequence& sequence) {
  const std::vector<at::Tensor> written = written_buffers(*mine_.front());
  if (brings_buffers_ && !written.empty()) {
    buffers_ = collective.all_reduce(members_, sequence, packed(written, first_));
  }
}

void CopiesSum::finish(Deadline deadline) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  for (std::size_t b = 0; b < sums_.size(); ++b) {
    sums.push_back(sums_[b]->wait(deadline));
    for (std::size_t i = 1; i < mine_.size(); ++i) {
      mine_[i]->buckets.flat_gradients(bucket_)[b].copy_(sums.back());
    }
  }
  sums_.clear();
  if (has_shards()) {
    mine_.front()->buckets.take_share(bucket_, sums);
  }
  if (buffers_ != nullptr) {
    take_buffers(deadline);
  }
}

void CopiesSum::take_buffers(Deadline deadline) {
  const std::unique_ptr<PendingResult> summed = std::move(buffers_);
  const at::Tensor words = summed->wait(deadline);
  for (const StageRuntime* stage : mine_) {
    with_buffers(words,
                 written_buffers(*stage),
                 [](const at::Tensor& place, const at::Tensor& own) { own.copy_(place); });
  }
}

void CopiesSum::start_norms(Collective& collective, const Sequence& step) {
  if (!has_shards()) {
    return;
  }
  const at::Tensor squares = mine_.front()->buckets.divided_squares(bucket_);
  if (squares.numel() > 0) {
    Sequence sequence = step;
    sequence.number = number_of(Exchange::Norms);
    norms_ = collective.all_gather(members_, sequence, squares);
  }
}

void CopiesSum::finish_norms(Deadline deadline) {
  if (const std::unique_ptr<PendingResult> norms = std::move(norms_)) {
    mine_.front()->buckets.take_divided_squares(bucket_, norms->wait(deadline));
  }
}

/// Others read these weights until they have finished, and no rank votes in the next step before:
/// no update writes to them meanwhile.
void CopiesSum::start_gather(Collective& collective, const Sequence& step, const SumTurn& turn) {
  Sequence sequence = step;
  sequence.number = number_of(Exchange::Weights) + first_number(turn.round);
  for (const at::Tensor& weights : mine_.front()->buckets.own_weights(bucket_)) {
    weights_.push_back(collective.all_gather(members_, sequence, weights));
    ++sequence.number;
  }
}

void CopiesSum::finish_gather(Deadline deadline) {
  const at::NoGradGuard no_grad;
  mine_.front()->buckets.hold_weights(bucket_);
  const std::vector<at::Tensor>& weights = mine_.front()->buckets.flat_weights(bucket_);
  for (std::size_t b = 0; b < weights_.size(); ++b) {
    weights_[b]->wait_into(deadline, weights[b]);
  }
  weights_.clear();
}

void CopiesSum::release_weights() {
  mine_.front()->buckets.release_weights(bucket_);
}

void CopiesSum::drop() {
  for (auto* pending : {&sums_, &weights_}) {
    for (const auto& one : *pending) {
      one->abandon();
    }
    pending->clear();
  }
  for (auto* pending : {&buffers_, &norms_}) {
    if (*pending != nullptr) {
      (*pending)->abandon();
      pending->reset();
    }
  }
}

}  // namespace stagecraft
