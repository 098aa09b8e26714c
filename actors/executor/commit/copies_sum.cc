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
                     std::vector<const StageRuntime*> mine,
                     std::size_t bucket,
                     bool first)
    : members_(std::move(members)), mine_(std::move(mine)), bucket_(bucket), first_(first) {
  SC_CHECK(!mine_.empty(), "a rank of a group of copies holds one of its stages");
}

void CopiesSum::start(Collective& collective, const Sequence& step) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor>& gradients = mine_.front()->buckets.flat_gradients(bucket_);
  Sequence sequence = step;
  for (std::size_t b = 0; b < gradients.size(); ++b) {
    for (std::size_t i = 1; i < mine_.size(); ++i) {
      gradients[b].add_(mine_[i]->buckets.flat_gradients(bucket_)[b]);
    }
    sequence.number = static_cast<std::int32_t>(b);
    sums_.push_back(collective.all_reduce(members_, sequence, gradients[b]));
  }
  sequence.number = static_cast<std::int32_t>(gradients.size());
  start_buffers(collective, sequence);
}

/// Only the first copy has words other than 0, so their sum is its buffers, and nobody has to look
/// for them.
void CopiesSum::start_buffers(Collective& collective, const Sequence& sequence) {
  const std::vector<at::Tensor> written = written_buffers(*mine_.front());
  if (bucket_ == 0 && !written.empty()) {
    buffers_ = collective.all_reduce(members_, sequence, packed(written, first_));
  }
}

void CopiesSum::finish(Deadline deadline) {
  const at::NoGradGuard no_grad;
  for (std::size_t b = 0; b < sums_.size(); ++b) {
    const at::Tensor sum = sums_[b]->wait(deadline);
    for (std::size_t i = 1; i < mine_.size(); ++i) {
      mine_[i]->buckets.flat_gradients(bucket_)[b].copy_(sum);
    }
  }
  sums_.clear();
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

void CopiesSum::drop() {
  for (const auto& sum : sums_) {
    sum->abandon();
  }
  sums_.clear();
  if (buffers_ != nullptr) {
    buffers_->abandon();
    buffers_.reset();
  }
}

}  // namespace stagecraft
