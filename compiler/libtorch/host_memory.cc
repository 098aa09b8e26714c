#include "stagecraft/compiler/libtorch/host_memory.h"

#include <mutex>

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/empty.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stagecraft/base/log.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"

namespace stagecraft {

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
  if (memory == HostMemory::Pinned) {
    try {
      return at::empty(sizes, options.pinned_memory(true));
    } catch (const c10::Error& error) {
      static std::once_flag once;
      std::call_once(once, [&] {
        log(Level::Warning,
            "no pinned memory: devices copy batches from pageable memory, which takes longer",
            {{"why", foreign_text(error)}});
      });
    }
  }
  return at::empty(sizes, options);
}

}  // namespace stagecraft
