/// HostMemory says from and to what memory of the host an accelerator is to copy.
#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace stagecraft {

/// Pinned: an accelerator copies from it by itself, while the host goes on. The host has a part in
/// each copy from pageable memory.
enum class HostMemory : std::uint8_t { Pageable, Pinned };

/// Returns the best memory for a device of this name (c10::Device): Pinned if it is an accelerator
/// that this process has open.
[[nodiscard]] HostMemory memory_for(const std::string& device);

/// Returns a contiguous tensor without values. It is pageable if there is no pinned memory left;
/// the log says so, once in a process.
[[nodiscard]] at::Tensor empty_in(HostMemory memory,
                                  at::IntArrayRef sizes,
                                  const at::TensorOptions& options);

/// Returns a copy in pinned memory, with the same strides, and waits for it. Requires: a dense
/// tensor.
[[nodiscard]] at::Tensor copy_to_host(const at::Tensor& on_device);
/// Returns a copy on the device, by way of pinned memory. The host goes on. Requires: likewise.
[[nodiscard]] at::Tensor copy_to_device(const at::Tensor& on_host, const c10::Device& device);
/// Copies likewise into a tensor of a device.
void copy_to_device(const at::Tensor& on_host, const at::Tensor& on_device);

}  // namespace stagecraft
