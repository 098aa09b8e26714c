/// HeardRanks hears what the ranks of a trainer run, and counts the memory of their threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "stagecraft/stagecraft.h"

namespace stagecraft::tests {

/// Shared by the test and the ranks' threads; the mutex guards all but the meters. Those are
/// atomic, because all threads that work for a rank count in its meter.
class HeardRanks {
 public:
  /// Serves as TrainerOptions::before_instruction.
  void operator()(Rank rank, const Instruction& instruction) {
    const std::scoped_lock lock(mutex_);
    Heard& heard = heard_[rank];
    if (heard.meter == nullptr) {
      heard.meter = std::make_shared<Meter>();
      c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, heard.meter);
    }
    if (heard.list.empty()) {
      heard.start = heard.meter->live;
      heard.meter->peak = heard.start;
    }
    heard.list.push_back(instruction);
  }

  /// Forgets what it has heard. Requires: no step runs.
  void begin() {
    const std::scoped_lock lock(mutex_);
    for (auto& [rank, heard] : heard_) {
      heard.list.clear();
    }
  }

  /// Return the instructions of a rank since begin(), the most groups whose weights it gathered or
  /// had at a time, and the most bytes that its thread held beyond those of the first instruction.
  [[nodiscard]] std::vector<Instruction> list(Rank rank) {
    const std::scoped_lock lock(mutex_);
    return heard_[rank].list;
  }
  [[nodiscard]] std::size_t most_gathered(Rank rank) {
    std::size_t now = 0, most = 0;
    for (const Instruction& i : list(rank)) {
      now += i.op == Op::Start && i.collective == CollectiveKind::AllGather ? 1 : 0;
      now -= i.op == Op::Release ? 1 : 0;
      most = std::max(most, now);
    }
    return most;
  }
  [[nodiscard]] std::int64_t most_bytes(Rank rank) {
    const std::scoped_lock lock(mutex_);
    return heard_[rank].meter->peak - heard_[rank].start;
  }

 private:
  struct Meter : c10::MemoryReportingInfoBase {
    std::atomic<std::int64_t> live = 0, peak = 0;
    void reportMemoryUsage(
        void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
      const std::int64_t now = live += size;
      std::int64_t most = peak;
      while (now > most && !peak.compare_exchange_weak(most, now)) {
      }
    }
    [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }
  };
  struct Heard {
    std::shared_ptr<Meter> meter;
    std::int64_t start = 0;
    std::vector<Instruction> list;
  };

  std::mutex mutex_;
  std::map<Rank, Heard> heard_;
};

/// Returns the hook of a trainer. It shares `heard`, which thereby outlives the worker threads.
inline std::function<void(Rank, const Instruction&)> hook_of(std::shared_ptr<HeardRanks> heard) {
  return [heard = std::move(heard)](Rank rank, const Instruction& i) { (*heard)(rank, i); };
}

}  // namespace stagecraft::tests
