#include "stagecraft/actors/executor/device/device_name.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

int devices_of(c10::DeviceType type) {
  return at::accelerator::isAccelerator(type) && c10::impl::hasDeviceGuardImpl(type)
             ? c10::impl::VirtualGuardImpl(type).deviceCount()
             : 0;
}

}  // namespace

c10::Device named_device(const std::string& name) {
  try {
    return c10::Device(name);
  } catch (const c10::Error&) {  // its text lists all devices that LibTorch has ever had
    throw Error(Errc::UsageArgument,
                fmt::format("{} expects cpu, cuda, cuda:N or another accelerator's name, found "
                            "\"{}\"",
                            kOption,
                            name))
        .about("device");
  }
}

c10::Device place_of(const std::string& name, Rank rank) {
  const c10::Device device = named_device(name);
  if (is_program_device(device)) {
    return kProgramDevice;
  }
  if (device.is_cuda()) {
    open_cuda();
  }
  const int count = devices_of(device.type());
  if (device.index() >= count || count == 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} is {}, and the process of rank {} has {} of these",
                            kOption,
                            name,
                            rank.value,
                            count == 0 ? "none" : std::to_string(count)))
        .about("device");
  }
  const int number = device.has_index() ? device.index() : rank.value % count;
  return {device.type(), static_cast<c10::DeviceIndex>(number)};
}

}  // namespace stagecraft
