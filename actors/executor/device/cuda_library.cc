#include "stagecraft/actors/executor/device/cuda_library.h"

#include <filesystem>
#include <string>

#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

[[noreturn]] void refuse(const std::string& missing, const std::string& remedy) {
  throw Error(
      Errc::UsageArgument,
      fmt::format("{} is cuda, and this process cannot use it: {}; {}", kOption, missing, remedy))
      .about("device");
}

/// Returns the folder of LibTorch's libraries in this process.
std::filesystem::path libtorch_folder() {
  Dl_info found{};
  const auto* const inside = reinterpret_cast<const void*>(&at::detail::getCUDAHooks);
  if (dladdr(inside, &found) == 0) {
    refuse("it does not know where its LibTorch is", "link LibTorch as shared libraries");
  }
  return std::filesystem::path(found.dli_fname).parent_path();
}

void open_library() {
  const std::filesystem::path library = libtorch_folder() / "libtorch_cuda.so";
  if (!std::filesystem::exists(library)) {
    refuse(fmt::format("{} is missing", library.string()),
           "this LibTorch was built without CUDA; take one that was built with it");
  }
  // It stays open: LibTorch keeps what the library registers.
  if (dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    refuse(fmt::format("LibTorch's CUDA part does not open ({})", dlerror()),
           "install CUDA 13, or run tools/setup --cuda");
  }
}

/// Returns a function of the CUDA runtime, which LibTorch's CPU part has loaded too.
template <class Function>
Function* runtime_function(const char* name) {
  auto* const found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) {
    refuse(fmt::format("the CUDA runtime has no {} ({})", name, dlerror()), "install CUDA 13");
  }
  return reinterpret_cast<Function*>(found);
}

void require_gpu() {
  int driver = 0;
  if (runtime_function<int(int*)>("cudaDriverGetVersion")(&driver) != 0 || driver == 0) {
    refuse("no NVIDIA driver is installed", "install one, or leave the device out");
  }
  int count = 0;
  const int error = runtime_function<int(int*)>("cudaGetDeviceCount")(&count);
  if (error != 0) {
    refuse(fmt::format("the driver (CUDA {}.{}) says: {}",
                       driver / 1000,
                       driver % 1000 / 10,
                       runtime_function<const char*(int)>("cudaGetErrorString")(error)),
           "see nvidia-smi");
  }
  if (count == 0) {
    refuse("the driver finds no GPU", "see nvidia-smi, and CUDA_VISIBLE_DEVICES");
  }
}

}  // namespace

void open_cuda() {
  if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA)) {
    open_library();
  }
  if (!at::detail::getCUDAHooks().isBuilt()) {
    refuse("LibTorch has already asked for accelerators, and knows of no CUDA",
           "call sc::open_cuda() before the program compiles or computes gradients, or link "
           "LibTorch's CUDA part");
  }
  require_gpu();
}

}  // namespace stagecraft
