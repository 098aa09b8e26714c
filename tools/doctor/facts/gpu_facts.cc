#include "stagecraft/tools/doctor/facts/gpu_facts.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/device/cuda_library.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kNccl = "libnccl.so.2";
constexpr const char* kNcclBesideLibTorch = "../../nvidia/nccl/lib";

struct CloseLibrary {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

/// Returns the number from a function of CUDA or NCCL; 0 if there is no such function, or if it
/// fails.
int number_of(void* library, const char* function) {
  int number = 0;
  const auto ask = reinterpret_cast<int (*)(int*)>(dlsym(library, function));
  return ask != nullptr && ask(&number) == 0 ? number : 0;
}

/// Looks for NCCL where the system finds it, and where LibTorch looks for it: in its wheel.
std::string nccl_version() {
  Dl_info torch{};
  std::filesystem::path beside;
  if (dladdr(reinterpret_cast<const void*>(&at::get_cpu_capability), &torch) != 0) {
    beside = std::filesystem::path(torch.dli_fname).parent_path() / kNcclBesideLibTorch / kNccl;
  }
  for (const std::string& place : {std::string(kNccl), beside.string()}) {
    const Library library(dlopen(place.c_str(), RTLD_LAZY | RTLD_LOCAL));
    const int number = library ? number_of(library.get(), "ncclGetVersion") : 0;
    if (number > 0) {
      return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
    }
  }
  return "";
}

/// Returns the bytes of the smallest GPU; 0 if one of them does not say, as when another process
/// has it for itself. Requires: CUDA is open.
double least_memory(int gpus) {
  double least = std::numeric_limits<double>::infinity();
  try {
    at::globalContext().lazyInitDevice(at::kCUDA);
    for (int gpu = 0; gpu < gpus; ++gpu) {
      const auto memory =
          c10::getDeviceAllocator(at::kCUDA)->getMemoryInfo(static_cast<c10::DeviceIndex>(gpu));
      least = std::min(least, static_cast<double>(memory.second));
    }
  } catch (const c10::Error&) {
    return 0.0;
  }
  return gpus > 0 ? least : 0.0;
}

}  // namespace

GpuFacts gpu_facts() {
  GpuFacts facts{.missing = {},
                 .remedy = {},
                 .runtime = number_of(RTLD_DEFAULT, "cudaRuntimeGetVersion"),
                 .driver = number_of(RTLD_DEFAULT, "cudaDriverGetVersion"),
                 .visible = number_of(RTLD_DEFAULT, "cudaGetDeviceCount"),
                 .memory = 0.0,
                 .visible_says = {},
                 .nccl = nccl_version()};
  if (const char* says = std::getenv("CUDA_VISIBLE_DEVICES"); says != nullptr) {
    facts.visible_says = says;
  }
  if (facts.driver == 0) {  // LibTorch's CUDA part is large
    facts.missing = "no NVIDIA driver is installed";
    facts.remedy = "for GPUs install one; in a container, start it with them (--gpus all)";
  } else if (const auto obstacle = try_open_cuda()) {
    facts.missing = obstacle->reason;
    facts.remedy = obstacle->remedy;
  } else {
    facts.memory = least_memory(facts.visible);
  }
  return facts;
}

std::string cuda_version(int number) {
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

}  // namespace stagecraft::tools
