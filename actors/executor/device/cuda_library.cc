#include "stagecraft/actors/executor/device/cuda_library.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <ATen/detail/CUDAHooksInterface.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using Obstacle = std::optional<CudaObstacle>;

// Results of the CUDA runtime.
constexpr int kOldDriver = 35, kNoDevice = 100;

/// Asks without fixing what LibTorch knows (CU-1).
bool is_open() {
  return at::CUDAHooksRegistry()->Has("CUDAHooks");
}

Obstacle open_library() {
  Dl_info libtorch{};
  if (dladdr(reinterpret_cast<const void*>(&at::CUDAHooksRegistry), &libtorch) == 0) {
    return CudaObstacle{"nothing says where its LibTorch is", "link LibTorch as shared libraries"};
  }
  const std::filesystem::path library =
      std::filesystem::path(libtorch.dli_fname).parent_path() / "libtorch_cuda.so";
  if (!std::filesystem::exists(library)) {
    return CudaObstacle{fmt::format("{} is missing", library.string()),
                        "this LibTorch was built without CUDA; take one that was built with it"};
  }
  // It stays open: LibTorch keeps what the library registers.
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return CudaObstacle{fmt::format("LibTorch's CUDA part does not open ({})", dlerror()),
                        "install CUDA 13, or run tools/setup --cuda"};
  }
  return std::nullopt;
}

/// Returns a function of the CUDA runtime, which LibTorch's CPU part has loaded too; null if there
/// is none.
template <class Function>
Function* runtime_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

Obstacle find_gpu() {
  auto* const version_of = runtime_function<int(int*)>("cudaDriverGetVersion");
  auto* const count_of = runtime_function<int(int*)>("cudaGetDeviceCount");
  auto* const text_of = runtime_function<const char*(int)>("cudaGetErrorString");
  if (version_of == nullptr || count_of == nullptr || text_of == nullptr) {
    return CudaObstacle{"there is no CUDA runtime", "install CUDA 13, or run tools/setup --cuda"};
  }
  int driver = 0;
  if (version_of(&driver) != 0 || driver == 0) {
    return CudaObstacle{"no NVIDIA driver is installed",
                        "install one; in a container, start it with the GPUs (--gpus all)"};
  }
  int count = 0;
  const int result = count_of(&count);
  if (result == kNoDevice || (result == 0 && count == 0)) {
    return CudaObstacle{"the driver shows no GPU",
                        "let programs see one: CUDA_VISIBLE_DEVICES, --gres of a job, --gpus of a "
                        "container, and the modes of /dev/nvidia*"};
  }
  if (result != 0) {
    return CudaObstacle{
        fmt::format("the driver, for CUDA {}.{}, says: {}",
                    driver / 1000,
                    driver % 1000 / 10,
                    text_of(result)),
        result == kOldDriver ? "install a driver for CUDA 13 or a newer one" : "see nvidia-smi"};
  }
  return std::nullopt;
}

}  // namespace

Obstacle try_open_cuda() {
  static std::mutex mutex;  // another rank waits until LibTorch has all of it
  const std::scoped_lock lock(mutex);
  connect_nccl_early();
  if (!is_open()) {
    if (Obstacle obstacle = open_library()) {
      return obstacle;
    }
  }
  if (!at::detail::getCUDAHooks().isBuilt()) {
    return CudaObstacle{"LibTorch has already asked for accelerators, and knows of no CUDA",
                        "call sc::open_cuda() first in main(), before torch::manual_seed(); start "
                        "a worker anew that has had ranks on the CPU"};
  }
  return find_gpu();
}

void connect_nccl_early() {
  if (std::getenv("NCCL_RUNTIME_CONNECT") == nullptr) {
    setenv("NCCL_RUNTIME_CONNECT", "0", 1);  // NOLINT(concurrency-mt-unsafe): first in main()
  }
}

void open_cuda() {
  if (const Obstacle obstacle = try_open_cuda()) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} is cuda, and this process cannot use it: {}; {}",
                            kOption,
                            obstacle->reason,
                            obstacle->remedy))
        .about("device");
  }
}

}  // namespace stagecraft
