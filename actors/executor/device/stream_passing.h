/// StreamPassing hands tensors over between the accelerators of a process, without the host: the
/// taker's stream waits for an event of the giver's.
#pragma once

#include <mutex>
#include <unordered_map>

#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stagecraft/futures/collective/passing.h"

namespace stagecraft {

class StreamPassing final : public Passing {
 public:
  /// `place`: the device of the rank that gives and takes.
  explicit StreamPassing(c10::Device place);

  [[nodiscard]] at::Tensor hand_over(const at::Tensor& tensor) override;
  [[nodiscard]] at::Tensor take_over(at::Tensor tensor) override;

  // The same for the streams that a rank knows.

  [[nodiscard]] static at::Tensor hand_over(const c10::Stream& writer, const at::Tensor& tensor);
  /// Copies a tensor of the host's memory, or one that was not handed over.
  /// Requires: `reader` is the current stream of `place`.
  [[nodiscard]] at::Tensor take_over(const c10::Stream& reader, at::Tensor tensor);

 private:
  [[nodiscard]] c10::Stream reader_of(c10::Device device);

  const c10::Device place_;
  const c10::impl::VirtualGuardImpl guard_;
  std::mutex mutex_;
  std::unordered_map<c10::Device, c10::Stream> readers_;
};

/// SumStream is where a rank on an accelerator adds what other ranks of its process hand over: a
/// stream of its own beside the plan's, for the thread that adds.
class SumStream {
 public:
  explicit SumStream(c10::Device place);

  /// Makes the stream the calling thread's current one.
  void use() const;
  /// Waits until its work is done. That waits only for events that are recorded, so this ends.
  void synchronize() const;

 private:
  c10::impl::VirtualGuardImpl guard_;
  c10::Stream stream_;
};

}  // namespace stagecraft
