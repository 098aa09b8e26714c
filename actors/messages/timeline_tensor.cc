#include "stagecraft/actors/messages/timeline_tensor.h"

#include <cstring>
#include <type_traits>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr std::int64_t kColumns = 6;
static_assert(std::is_trivially_copyable_v<InstructionTime> &&
              sizeof(InstructionTime) == kColumns * sizeof(std::int64_t));

}  // namespace

at::Tensor pack_timeline(const std::vector<InstructionTime>& timeline) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(timeline.size()), kColumns}, at::kLong);
  if (!timeline.empty()) {
    std::memcpy(
        tensor.mutable_data_ptr(), timeline.data(), timeline.size() * sizeof(InstructionTime));
  }
  return tensor;
}

std::vector<InstructionTime> unpack_timeline(const at::Tensor& tensor,
                                             std::int64_t rows,
                                             std::int64_t clock_offset) {
  if (tensor.scalar_type() != at::kLong || tensor.dim() != 2 || tensor.size(0) != rows ||
      tensor.size(1) != kColumns || !tensor.is_contiguous()) {
    throw Error(
        Errc::Internal,
        fmt::format("a timeline of {} instructions was announced, and what came is none", rows));
  }
  std::vector<InstructionTime> timeline(static_cast<std::size_t>(rows));
  if (rows > 0) {
    std::memcpy(
        timeline.data(), tensor.const_data_ptr(), timeline.size() * sizeof(InstructionTime));
  }
  for (InstructionTime& time : timeline) {
    time.start += clock_offset;
    time.end += clock_offset;
    time.arrived += time.arrived == 0 ? 0 : clock_offset;  // 0: no receive
  }
  return timeline;
}

}  // namespace stagecraft
