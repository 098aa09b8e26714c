/// BlockMakers knows which operator of a forward made every block of memory that is alive, and
/// counts the bytes that are held at once.
///
///     const auto makers = std::make_shared<BlockMakers>();
///     const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, makers);
///
/// It sees all memory that its thread allocates and frees while it is the thread's profiler. Memory
/// from before is not counted, even if it is freed. time_model() and measure_split() use it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include <c10/core/Allocator.h>

namespace stagecraft {

class BlockMakers : public c10::MemoryReportingInfoBase {
 public:
  struct Block {
    double bytes = 0;
    std::optional<std::size_t> maker;  ///< a node of the graph; none: no operator of the forward
  };

  void reportMemoryUsage(
      void* block, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    if (size > 0) {
      const Block& added =
          alive_.insert_or_assign(block, Block{static_cast<double>(size), maker_}).first->second;
      held_ += counts(added) ? added.bytes : 0;
      peak_ = std::max(peak_, held_);
    } else if (const auto freed = alive_.find(block); freed != alive_.end()) {
      held_ -= counts(freed->second) ? freed->second.bytes : 0;
      alive_.erase(freed);
    }
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }

  /// Sets the operator that makes the blocks allocated from now on.
  void set_maker(std::optional<std::size_t> maker) { maker_ = maker; }

  /// Restarts the peak. From now on it counts all blocks except those made by operators before
  /// `first`.
  void count_from(std::size_t first) {
    if (first != first_) {
      first_ = first;
      held_ = 0;
      for (const auto& [block, made] : alive_) {
        held_ += counts(made) ? made.bytes : 0;
      }
    }
    peak_ = held_;
  }
  /// Returns the most bytes that were held at once since count_from().
  [[nodiscard]] double peak() const { return peak_; }

  [[nodiscard]] const std::unordered_map<const void*, Block>& alive() const { return alive_; }

 private:
  [[nodiscard]] bool counts(const Block& block) const {
    return !block.maker || *block.maker >= first_;
  }

  std::unordered_map<const void*, Block> alive_;
  std::optional<std::size_t> maker_;
  std::size_t first_ = 0;
  double held_ = 0;  // of the blocks that count
  double peak_ = 0;
};

}  // namespace stagecraft
