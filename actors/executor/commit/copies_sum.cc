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

StageRuntime& first_of(const std::vector<StageRuntime*>& mine) {
  SC_CHECK(!mine.empty(), "a rank of a group of copies holds one of its stages");
  return *mine.front();
}

}  // namespace

CopiesSum::CopiesSum(Group members,
                     std::vector<StageRuntime*> mine,
                     std::size_t bucket,
                     bool first,
                     std::int32_t rounds,
                     bool brings_buffers)
    : SharedParts(std::move(members), first_of(mine), bucket),
      mine_(std::move(mine)),
      first_(first),
      rounds_(rounds),
      brings_buffers_(brings_buffers) {
  SC_CHECK(mine_.size() == 1 || !has_shards(), "a rank with a shard holds one copy");
}

void CopiesSum::start(Collective& collective, const Sequence& step, const SumTurn& turn) {
  const at::NoGradGuard no_grad;
  buckets().hold_gradients(bucket());
  const std::vector<at::Tensor> gradients = buckets().lendable_gradients(bucket());
  Sequence sequence = step;
  for (std::size_t b = 0; b < gradients.size(); ++b) {
    for (std::size_t i = 1; i < mine_.size(); ++i) {
      gradients[b].add_(mine_[i]->buckets.flat_gradients(bucket())[b]);
    }
    sequence.number = first_number(turn.round) + static_cast<std::int32_t>(b);
    sums_.push_back(has_shards() ? collective.reduce_scatter(members(), sequence, gradients[b])
                                 : collective.all_reduce(members(), sequence, gradients[b]));
  }
  if (turn.last_batch && turn.round == rounds_ - 1) {
    sequence.number = number_of(Exchange::Buffers);
    start_buffers(collective, sequence);
  }
}

bool CopiesSum::has_shards() const {
  return buckets().has_shards(bucket());
}

/// Returns the number of a round's first sum among the step's collectives of the group.
std::int32_t CopiesSum::first_number(std::int32_t round) const {
  const std::size_t sums = buckets().flat_gradients(bucket()).size();
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
    buffers_ = collective.all_reduce(members(), sequence, packed(written, first_));
  }
}

void CopiesSum::finish(Deadline deadline) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> sums;
  for (std::size_t b = 0; b < sums_.size(); ++b) {
    sums.push_back(sums_[b]->wait(deadline));
    for (std::size_t i = 1; i < mine_.size(); ++i) {
      mine_[i]->buckets.flat_gradients(bucket())[b].copy_(sums.back());
    }
  }
  sums_.clear();
  if (has_shards()) {
    buckets().take_share(bucket(), sums);
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
  if (has_shards()) {
    Sequence sequence = step;
    sequence.number = number_of(Exchange::Norms);
    SharedParts::start_norms(collective, sequence);
  }
}

void CopiesSum::start_gather(Collective& collective, const Sequence& step, const SumTurn& turn) {
  Sequence sequence = step;
  sequence.number = number_of(Exchange::Weights);
  SharedParts::start_gather(collective, sequence, turn);
}

void CopiesSum::drop() {
  SharedParts::drop();
  for (const auto& one : sums_) {
    one->abandon();
  }
  sums_.clear();
  if (buffers_ != nullptr) {
    buffers_->abandon();
    buffers_.reset();
  }
}

}  // namespace stagecraft
