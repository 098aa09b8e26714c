#include "stagecraft/actors/executor/replica_buffers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

Tensors written_buffers(const StageRuntime& stage) {
  Tensors written;
  for (std::size_t i = 0; i < stage.program->buffers.size(); ++i) {
    if (stage.program->buffers[i].written) {
      written.push_back(stage.state.buffers[i]);
    }
  }
  return written;
}

at::Tensor bytes_of(const at::Tensor& buffer) {
  return buffer.contiguous().reshape({-1}).view(at::kByte);
}

/// One byte that says whether the buffers are the first copy's, and theirs.
at::Tensor packed(const Tensors& buffers, bool first) {
  std::int64_t count = 1;
  for (const at::Tensor& buffer : buffers) {
    count += static_cast<std::int64_t>(buffer.nbytes());
  }
  at::Tensor all = at::zeros({count}, at::kByte);
  if (!first) {
    return all;
  }
  all.narrow(0, 0, 1).fill_(1);
  std::int64_t begin = 1;
  for (const at::Tensor& buffer : buffers) {
    const auto size = static_cast<std::int64_t>(buffer.nbytes());
    all.narrow(0, begin, size).copy_(bytes_of(buffer));
    begin += size;
  }
  return all;
}

void unpack(const at::Tensor& all, const Tensors& buffers) {
  std::int64_t begin = 1;
  for (const at::Tensor& buffer : buffers) {
    const auto size = static_cast<std::int64_t>(buffer.nbytes());
    // A copy lies where any type may.
    const at::Tensor values = all.narrow(0, begin, size).clone().view(buffer.scalar_type());
    at::Tensor to = buffer;
    to.copy_(values.view(buffer.sizes()));
    begin += size;
  }
}

}  // namespace

void take_buffers_of_first(Collective& collective,
                           const Group& group,
                           const std::vector<const StageRuntime*>& mine,
                           const Sequence& sequence,
                           Deadline deadline) {
  SC_CHECK(!mine.empty(), "a rank of a replica group holds one of its stages");
  if (written_buffers(*mine.front()).empty()) {
    return;
  }
  const at::NoGradGuard no_grad;
  const auto first =
      std::ranges::find(mine, 0, [](const StageRuntime* stage) { return stage->program->replica; });
  at::Tensor all = packed(written_buffers(first == mine.end() ? *mine.front() : **first),
                          /*first=*/first != mine.end());
  const std::int64_t size = all.numel();
  if (group.ranks.size() > 1) {
    all = collective.all_gather(group, sequence, std::move(all))->wait(deadline);
  }
  for (std::int64_t begin = 0; begin < all.numel(); begin += size) {
    if (all.narrow(0, begin, 1).item<std::uint8_t>() == 1) {
      for (const StageRuntime* stage : mine) {
        unpack(all.narrow(0, begin, size), written_buffers(*stage));
      }
      return;
    }
  }
  SC_CHECK(false, "one rank of a replica group has its first copy");
}

}  // namespace stagecraft
