#include "stagecraft/compiler/libtorch/host_memory.h"

#include <mutex>

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stagecraft/base/log.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"

namespace stagecraft {
namespace {

template <class Make>
at::Tensor made_in(HostMemory memory, const at::TensorOptions& options, const Make& make) {
  if (memory == HostMemory::Pinned) {
    try {
      return make(options.pinned_memory(true));
    } catch (const c10::Error& error) {
      static std::once_flag once;
      std::call_once(once, [&] {
        log(Level::Warning,
            "no pinned memory: devices copy from and to pageable memory, which takes longer",
            {{"why", foreign_text(error)}});
      });
    }
  }
  return make(options);
}

at::Tensor pinned_like(const at::Tensor& tensor) {
  return made_in(
      HostMemory::Pinned, tensor.options().device(at::kCPU), [&](const at::TensorOptions& options) {
        return at::empty_strided(tensor.sizes(), tensor.strides(), options);
      });
}

at::Tensor pinned(const at::Tensor& on_host) {
  return on_host.is_pinned() ? on_host : pinned_like(on_host).copy_(on_host);
}

}  // namespace

HostMemory memory_for(const std::string& device) {
  const c10::DeviceType type = c10::Device(device).type();
  if (!at::accelerator::isAccelerator(type) || !c10::impl::hasDeviceGuardImpl(type)) {
    return HostMemory::Pageable;
  }
  const int count = c10::impl::VirtualGuardImpl(type).deviceCount();
  for (int i = 0; i < count; ++i) {
    if (at::globalContext().getAcceleratorHooksInterface(type).hasPrimaryContext(
            static_cast<c10::DeviceIndex>(i))) {
      return HostMemory::Pinned;
    }
  }
  return HostMemory::Pageable;
}

at::Tensor empty_in(HostMemory memory, at::IntArrayRef sizes, const at::TensorOptions& options) {
  return made_in(
      memory, options, [&](const at::TensorOptions& in) { return at::empty(sizes, in); });
}

at::Tensor copy_to_host(const at::Tensor& on_device) {
  return pinned_like(on_device).copy_(on_device);
}

at::Tensor copy_to_device(const at::Tensor& on_host, const c10::Device& device) {
  return pinned(on_host).to(device, /*non_blocking=*/true);
}

void copy_to_device(const at::Tensor& on_host, const at::Tensor& on_device) {
  (void)on_device.copy_(pinned(on_host), /*non_blocking=*/true);
}

}  // namespace stagecraft
