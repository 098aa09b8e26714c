#include "stagecraft/tools/train/decide/gpu_memory.h"

#include <algorithm>
#include <limits>
#include <map>

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/actors/executor/device/device_name.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft::tools {

namespace {

struct Gpu {
  double left = 0.0;  ///< bytes
  int ranks = 0;
};

/// Returns the GPUs of the ranks; none where gpu_memory() returns nothing.
std::map<c10::DeviceIndex, Gpu> gpus_of(const TrainOptions& options, int ranks) {
  const WorkerOptions& workers = options.workers;
  const c10::Device named = named_device(workers.device);
  if (workers.kind != WorkerKind::Threads || is_program_device(named) ||
      (options.run.dry_run && named.is_cuda() && try_open_cuda())) {
    return {};
  }
  std::map<c10::DeviceIndex, Gpu> gpus;
  for (int rank = 0; rank < ranks; ++rank) {
    const c10::Device device = place_of(workers.device, Rank(rank));
    Gpu& gpu = gpus[device.index()];
    if (gpu.ranks++ == 0) {
      at::globalContext().lazyInitDevice(device.type());
      gpu.left = static_cast<double>(
          c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first);
    }
  }
  return gpus;
}

}  // namespace

std::optional<MemoryLimit> gpu_memory(const TrainOptions& options, int ranks) {
  const auto gpus = gpus_of(options, ranks);
  if (gpus.empty()) {
    return std::nullopt;
  }
  double left = 0.0;
  for (const auto& [index, gpu] : gpus) {
    left += gpu.left;
  }
  return MemoryLimit{.who = count_text(std::ssize(gpus), "GPU"), .bytes = left, .of_gpus = true};
}

double gpu_memory_of_each(const TrainOptions& options, int ranks) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [index, gpu] : gpus_of(options, ranks)) {
    least = std::min(least, gpu.left / gpu.ranks);
  }
  return least;
}

}  // namespace stagecraft::tools
