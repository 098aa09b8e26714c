/// MemoryMeter counts the bytes that the calling thread allocates and frees while it is the
/// thread's profiler.
///
///     const auto meter = std::make_shared<MemoryMeter>();
///     const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
#pragma once

#include <algorithm>
#include <cstdint>

#include <c10/core/Allocator.h>

namespace stagecraft {

class MemoryMeter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    live_ += size;
    peak_ = std::max(peak_, live_);
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  /// Returns the bytes allocated and not freed. They are below 0 if older memory was freed.
  [[nodiscard]] std::int64_t live() const { return live_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  /// Restarts the peak at the bytes that are live now.
  void reset_peak() { peak_ = live_; }

 private:
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace stagecraft
