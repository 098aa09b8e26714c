#include "stagecraft/actors/executor/commit/copies_sum.h"

#include <cstdint>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/actors/executor/mirror/packed_state.h"
#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

std::vector<NamedTensor> written_buffers(const StageRuntime& stage) {
  std::vector<NamedTensor> written;
  for (std::size_t i = 0; i < stage.program->buffers.size(); ++i) {
    if (stage.program->buffers[i].written) {
      written.push_back({stage.program->buffers[i].name, stage.state.buffers[i]});
    }
  }
  return written;
}

/// Returns one byte that says whether the buffers are the first copy's, and the buffers if they
/// are.
at::Tensor packed(const std::vector<NamedTensor>& buffers, bool first) {
  at::Tensor all = at::zeros({1 + packed_bytes(buffers)}, at::kByte);
  if (first) {
    all.narrow(0, 0, 1).fill_(1);
    pack(buffers, all.narrow(0, 1, all.numel() - 1));
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

void CopiesSum::start_buffers(Collective& collective, Sequence sequence) {
  const std::vector<NamedTensor> written = written_buffers(*mine_.front());
  if (bucket_ == 0 && !written.empty()) {
    buffers_ = collective.all_gather(members_, sequence, packed(written, first_));
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
  const std::unique_ptr<PendingResult> gathered = std::move(buffers_);
  const at::Tensor all = gathered->wait(deadline);
  const std::int64_t size = all.numel() / static_cast<std::int64_t>(members_.ranks.size());
  for (std::int64_t begin = 0; begin < all.numel(); begin += size) {
    if (all.narrow(0, begin, 1).item<std::uint8_t>() == 1) {
      for (const StageRuntime* stage : mine_) {
        unpack(all.narrow(0, begin + 1, size - 1), written_buffers(*stage));
      }
      return;
    }
  }
  SC_CHECK(false, "one rank of a group of copies has the first copy");
}

void CopiesSum::drop() {
  for (const auto& sum : sums_) {
    sum->abandon();
  }
  sums_.clear();
  buffers_.reset();
}

}  // namespace stagecraft
