#include "stagecraft/actors/executor/commit/replica_buffers.h"

#include <algorithm>
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
        unpack(all.narrow(0, begin + 1, size - 1), written_buffers(*stage));
      }
      return;
    }
  }
  SC_CHECK(false, "one rank of a replica group has its first copy");
}

}  // namespace stagecraft
