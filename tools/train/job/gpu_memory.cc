#include "stagecraft/tools/train/job/gpu_memory.h"

#include <set>

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/actors/executor/device/device_name.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft::tools {

std::optional<MemoryLimit> gpu_memory(const TrainOptions& options, int ranks) {
  const WorkerOptions& workers = options.workers;
  const c10::Device named = named_device(workers.device);
  if (workers.kind != WorkerKind::Threads || is_program_device(named) ||
      (options.run.dry_run && named.is_cuda() && try_open_cuda())) {
    return std::nullopt;
  }
  std::set<c10::DeviceIndex> gpus;
  double left = 0.0;
  for (int rank = 0; rank < ranks; ++rank) {
    const c10::Device device = place_of(workers.device, Rank(rank));
    if (gpus.insert(device.index()).second) {
      at::globalContext().lazyInitDevice(device.type());
      left += static_cast<double>(
          c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first);
    }
  }
  return MemoryLimit{.who = count_text(std::ssize(gpus), "GPU"), .bytes = left, .of_gpus = true};
}

}  // namespace stagecraft::tools
